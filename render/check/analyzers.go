package check

import (
	"context"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/analysis"
	"github.com/mooring-dev/mooring/render/check/world"
)

// analyze asks all of Istio's analyzers about a world.
func analyze(ctx context.Context, w *world.World) (found []Finding, gaps []Gap, err error) {
	result, err := analysis.Run(ctx, w, analysis.Options{})
	if err != nil {
		return nil, nil, err
	}
	for _, m := range result.Messages {
		found = append(found, analyzed(m))
	}
	for _, u := range result.Unknown {
		gaps = append(gaps, Gap{Code: u.Code, About: u.About, Why: u.Why})
	}
	return found, gaps, nil
}

// analyzed is a message as a finding. One whose code has no rule here is passed on all the same.
func analyzed(m analysis.Message) Finding {
	rule, known := analyzerRule(m.Code)
	if !known {
		rule = Rule{Code: m.Code, Level: Level(m.Level)}
	}
	p := problem{Field: m.Field, Message: m.Text}
	if m.Object == nil {
		return rule.finding(render.ID{}, render.Origin{}, p)
	}
	f := rule.finding(m.Object.ID, placeOf(m.Object.Object, p), p)
	f.From, f.Foreign = m.Object.From, m.Object.Foreign
	return f
}
