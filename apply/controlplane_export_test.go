package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// IsControlPlane and NeedsIstiod tell the tests how the order sees a wanted object.
func IsControlPlane(u *unstructured.Unstructured) bool {
	return isControlPlane(render.IDOf(u), formed(u))
}

func NeedsIstiod(action Action, u *unstructured.Unstructured) bool {
	return needsIstiod(Step{Action: action, ID: render.IDOf(u), want: formed(u)})
}

// AsWebhookError is what the API server's words are taken for.
func AsWebhookError(err error) (*WebhookError, bool) { return asWebhookError(err) }
