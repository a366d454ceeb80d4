package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// Istio's control plane is an object of a plan like any other, and one that much of the rest depends on: istiod's webhook judges each object of Istio's
// kinds, and its injector makes a gateway's pod out of the image "auto". So it comes first, and what depends on it begins when it serves.

// isControlPlane is true for what istiod is made of, apart from its accounts, rights and definitions, which come before it. Istio's charts label it; a
// webhook configuration tells by what it calls. f is nil for an object that Git does not have.
func isControlPlane(id render.ID, f *form) bool {
	switch {
	case f == nil:
		return false
	case f.gist != nil:
		return f.gist.controlPlane
	}
	return isPartOfIstiod(id, f.get())
}

// isPartOfIstiod is isControlPlane by the object itself.
func isPartOfIstiod(id render.ID, form *unstructured.Unstructured) bool {
	switch id.Group {
	case "", "apps", "autoscaling", "policy", "discovery.k8s.io", "networking.k8s.io":
		if id.Kind == kindNamespace.Kind || id.Kind == "ServiceAccount" {
			return false
		}
	case kindMutating.Group:
		if len(istiodHooks(form)) > 0 {
			return true
		}
	default:
		return false // an EnvoyFilter of the charts has the same labels, and waits for istiod as all of them do
	}
	labels := form.GetLabels()
	return labels["app"] == "istiod" || labels["app.kubernetes.io/name"] == "istiod" || labels["operator.istio.io/component"] == "Pilot"
}

// needsIstiod is true for a step that writes what only a working istiod lets be right: objects that its validating webhook judges, and
// workloads with an image that its injector fills in. A delete needs it not: the webhook is asked about creations and changes alone.
func needsIstiod(s Step) bool {
	if s.Action != Create && s.Action != Update && s.Action != Replace || s.release || s.want == nil {
		return false
	}
	return isIstioKind(s.ID) || hasImageAuto(s.want.get())
}

// isIstioKind is true for the kinds that istiod's validating webhook is asked about.
func isIstioKind(id render.ID) bool {
	switch id.Group {
	case "extensions.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io":
		return true
	default:
		return false
	}
}

// hasImageAuto is true for a workload whose pods are of no use until the injector has put the proxy's image in.
func hasImageAuto(form *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec", "template", "spec", "containers"}, {"spec", "containers"}} {
		containers, _, _ := unstructured.NestedSlice(form.Object, path...)
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok && container["image"] == "auto" {
				return true
			}
		}
	}
	return false
}

// controlPlaneReady waits until the control plane of the wave can be built upon: istiod's pods are of the new template alone and one of them is available, its webhooks
// hold its certificate, and its validating webhook answers. What this run wrote is waited for; what it found as it should be is looked at
// once, and only when something that is still to be written needs it.
//
// A step that is not ready has failed. The error names all of them, in the same words for as long as it is so, and is for those that needsIstiod picks: they are
// not reached. A webhook that fails open holds nothing back for good, and one that answers nobody is told of by those who need it.
func (r *runner) controlPlaneReady(ctx context.Context, steps []StepResult, until time.Time) error {
	needed := slices.ContainsFunc(r.result.Steps, func(s StepResult) bool { return s.State == NotReached && needsIstiod(s.Step) })
	var mu sync.Mutex
	var wg sync.WaitGroup
	var missing []string
	wrote := false
	for i := range steps {
		s := &steps[i]
		deadline := until
		switch {
		case s.State != Done || s.want == nil || !isControlPlane(s.ID, s.want) || s.Action == Skip:
			continue
		case s.Action != Unchanged:
			wrote = true
		case needed && s.ID.Kind == "Deployment" && (s.health == nil || !s.health.Current()):
			deadline = time.Time{}
		default:
			continue
		}
		wg.Go(func() {
			if err := safely(func() error { return r.serves(ctx, s, deadline) }); err != nil {
				r.fail(s, Failed, err)
				mu.Lock()
				defer mu.Unlock()
				missing = append(missing, fmt.Sprintf("%s %v", s.ID, err))
			}
		})
	}
	wg.Wait()
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("istiod is not ready: %s", strings.Join(missing, "; "))
	}
	if wrote && needed {
		r.awaitValidators(ctx, until)
	}
	return nil
}

// serves waits for one object of the control plane.
func (r *runner) serves(ctx context.Context, s *StepResult, until time.Time) error {
	check := unarmed
	switch {
	case s.ID.GroupKind() == kindDeployment:
		check = unserving
	case !isWebhook(s.ID):
		return nil
	}
	last, err := r.await(ctx, s, until, check)
	if last != nil {
		s.health = r.unit.healthOf(last)
	}
	if errors.Is(err, errFailsOpen) {
		return nil
	}
	return err
}

// unserving says why a Deployment of istiod cannot be built upon yet. That all of its pods are available is more than what is asked: one
// serves, and a node that is missing must not hold the mesh's configuration back.
func unserving(full *unstructured.Unstructured) error {
	number := func(otherwise int64, path ...string) int64 {
		n, found, _ := unstructured.NestedInt64(full.Object, path...)
		if !found {
			return otherwise
		}
		return n
	}
	if number(1, "spec", "replicas") == 0 {
		return nil // somebody wants none of it
	}
	var fault string
	replicas, updated := number(0, "status", "replicas"), number(0, "status", "updatedReplicas")
	switch {
	case number(0, "status", "observedGeneration") < full.GetGeneration():
		fault = "its controller has not seen the change yet"
	case updated == 0 || updated < replicas:
		fault = "pods of the change before are still there"
	case number(0, "status", "availableReplicas") == 0:
		fault = "none of its pods is available"
	default:
		return nil
	}
	if h := new(Unit).healthOf(full); h.Message != "" {
		fault += " (" + h.Message + ")"
	}
	return errors.New("does not serve: " + fault)
}

// errFailsOpen says of a validating webhook that istiod has not armed it yet, and that it lets everything through until then.
var errFailsOpen = errors.New("lets everything through until istiod arms it")

// unarmed says why istiod's webhooks cannot be called yet. Istiod puts its certificate into those that have its revision, and arms the validating ones
// once it has seen that a wrong object is refused.
func unarmed(full *unstructured.Unstructured) error {
	var open error
	for _, hook := range istiodHooks(full) {
		bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
		switch {
		case hook["failurePolicy"] == "Ignore":
			open = errFailsOpen
		case bundle == "":
			return fmt.Errorf("is not armed: istiod of revision %q has not put its certificate into webhook %v",
				full.GetLabels()[revisionLabel], hook["name"])
		}
	}
	return open
}

// istiodHooks are the webhooks of a configuration that call a Service of istiod.
func istiodHooks(form *unstructured.Unstructured) []map[string]any {
	hooks, _, _ := unstructured.NestedSlice(form.Object, "webhooks")
	var found []map[string]any
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if config, ok := hook["clientConfig"].(map[string]any); ok && servedByIstiod(config) {
			found = append(found, hook)
		}
	}
	return found
}
