package apply

import (
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	"github.com/mooring-dev/mooring/render"
)

// Health of one live object, in kstatus' words: Current, InProgress, Failed, Terminating, Unknown.
type Health struct {
	ID      render.ID
	Status  status.Status
	Message string
}

// Current is true when the object is as its spec wants it.
func (h Health) Current() bool {
	return h.Status == status.CurrentStatus
}
