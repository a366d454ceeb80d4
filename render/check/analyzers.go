package check

import (
	"context"

	"github.com/mooring-dev/mooring/render/check/world"
)

// analyzerRules are the codes of Istio's own analyzers, with what there is to say of them.
func analyzerRules() []Rule {
	return nil
}

// analyze asks all of Istio's analyzers about a world.
func analyze(_ context.Context, _ *world.World) (found []Finding, gaps []Gap, err error) {
	return nil, nil, nil
}
