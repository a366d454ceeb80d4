package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// Controllers whose work it is to change what others applied are known by their own objects, and nobody has to say so:
//
//   - HorizontalPodAutoscaler, and KEDA's ScaledObject, which makes one: spec.replicas of what they scale.
//   - Argo Rollouts' Rollout: weights in the VirtualServices, and the label rollouts-pod-template-hash in the subsets of the DestinationRule, that
//     trafficRouting.istio names, and routes that it manages itself.
//   - Flagger's Canary: replicas of its target, and weights and mirrors of the VirtualService of its service.
//
// Those in Git are known at no cost. Those that live are listed once for a plan, and only where an object that they could be about has moved: at rest
// nothing is asked. One that goes with the same plan has no say any more.

var (
	kindAutoscaler   = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	kindScaledObject = schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}
	kindRollout      = schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}
	kindCanary       = schema.GroupKind{Group: "flagger.app", Kind: "Canary"}
)

// sharer is a controller's object that has a say in fields of another one.
type sharer struct {
	target render.ID
	leave  []path
}

// sharersOf a controller's object: what it has a say in. An object of any other kind is not looked at.
func sharersOf(gk schema.GroupKind, f *form) []sharer {
	switch gk {
	case kindAutoscaler, kindScaledObject:
		return []sharer{{target: targetOf(f.get(), "spec", "scaleTargetRef"), leave: replicas()}}
	case kindRollout:
		return sharersOfRollout(f.get())
	case kindCanary:
		u := f.get()
		target := targetOf(u, "spec", "targetRef")
		service := field(u, "spec", "service", "name")
		if service == "" {
			service = target.Name
		}
		return []sharer{
			{target: target, leave: replicas()},
			{target: idOf(kindVirtualService, u.GetNamespace(), service), leave: append(weights("*"),
				parsePath("/spec/http/*/mirror"), parsePath("/spec/http/*/mirrorPercentage"))},
		}
	default:
		return nil
	}
}

func replicas() []path { return []path{parsePath("/spec/replicas")} }

// weights of the routes of a VirtualService that a token picks.
func weights(route string) []path {
	return []path{
		{"spec", "http", route, "route", "*", "weight"},
		{"spec", "tls", route, "route", "*", "weight"},
		{"spec", "tcp", route, "route", "*", "weight"},
	}
}

func sharersOfRollout(u *unstructured.Unstructured) []sharer {
	routing, found, _ := unstructured.NestedMap(u.Object, "spec", "strategy", "canary", "trafficRouting")
	istio, ok := routing["istio"].(map[string]any)
	if !found || !ok {
		return nil
	}
	var managed []path
	list, _ := routing["managedRoutes"].([]any)
	for _, r := range list {
		if route, ok := r.(map[string]any); ok {
			managed = append(managed, path{"spec", "http", fmt.Sprintf("%s%v", managedRoute, route["name"])})
		}
	}
	var all []sharer
	services, _ := istio["virtualServices"].([]any)
	for _, s := range append(services, istio["virtualService"]) {
		service, ok := s.(map[string]any)
		if !ok {
			continue
		}
		leave := managed
		routes, _ := service["routes"].([]any)
		for _, route := range routes {
			leave = append(leave, weights(fmt.Sprintf("name=%v", route))...)
		}
		if len(routes) == 0 {
			leave = append(leave, weights("*")...)
		}
		name, namespace, qualified := strings.Cut(fmt.Sprint(service["name"]), ".")
		if !qualified {
			namespace = u.GetNamespace()
		}
		all = append(all, sharer{target: idOf(kindVirtualService, namespace, name), leave: leave})
	}
	if rule, ok := istio["destinationRule"].(map[string]any); ok {
		all = append(all, sharer{
			target: idOf(kindDestinationRule, u.GetNamespace(), fmt.Sprint(rule["name"])),
			leave:  []path{parsePath("/spec/subsets/*/labels/rollouts-pod-template-hash")},
		})
	}
	return all
}

func targetOf(u *unstructured.Unstructured, at ...string) render.ID {
	ref, _, _ := unstructured.NestedStringMap(u.Object, at...)
	if ref == nil { // it holds what is no string
		ref = map[string]string{"apiVersion": field(u, append(at, "apiVersion")...), "kind": field(u, append(at, "kind")...), "name": field(u, append(at, "name")...)}
	}
	if ref["kind"] == "" { // a ScaledObject need not say
		ref["kind"], ref["apiVersion"] = "Deployment", "apps/v1"
	}
	gv, _ := schema.ParseGroupVersion(ref["apiVersion"])
	return idOf(schema.GroupKind{Group: gv.Group, Kind: ref["kind"]}, u.GetNamespace(), ref["name"])
}

func idOf(gk schema.GroupKind, namespace, name string) render.ID {
	return render.ID{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

func field(u *unstructured.Unstructured, at ...string) string {
	text, _, _ := unstructured.NestedString(u.Object, at...)
	return text
}

// shareFields gives the objects of the set the paths that controllers' objects of the same set have a say in.
func shareFields(all []wanted) {
	leave := make(map[render.ID][]path)
	for _, w := range all {
		for _, s := range sharersOf(w.id.GroupKind(), w.form) {
			leave[s.target] = append(leave[s.target], s.leave...)
		}
	}
	for i := range all {
		all[i].leave = append(all[i].leave, leave[all[i].id]...)
	}
}

// sharedBy are the kinds that could have a say in a wanted object.
func sharedBy(w wanted, m metav1.Object) []schema.GroupKind {
	_, scaled, _ := unstructured.NestedFieldNoCopy(w.form.get().Object, "spec", "replicas")
	switch gk := w.id.GroupKind(); {
	case gk == kindVirtualService, gk == kindDestinationRule:
		return []schema.GroupKind{kindRollout, kindCanary}
	case scaled || ownedByUs(m, "spec", "replicas"):
		return []schema.GroupKind{kindAutoscaler, kindCanary}
	default:
		return nil
	}
}

// sharers are what was listed for one plan.
type sharers struct {
	once sync.Once
	all  []sharer
	err  error
	// unseen is true when they are served and may not be listed.
	unseen bool
}

// shared gives the paths of an object that live controllers have a say in. m is nil for one that was not listed.
func (p *planner) shared(ctx context.Context, w wanted, m metav1.Object) ([]path, error) {
	var leave []path
	for _, gk := range sharedBy(w, m) {
		found := p.sharers[gk]
		found.once.Do(func() { found.all, found.unseen, found.err = p.listSharers(ctx, gk, w.id.Namespace) })
		if found.err != nil {
			return nil, fmt.Errorf("find out which fields a %s has a say in: %w", gk.Kind, found.err)
		}
		for _, s := range found.all {
			if s.target == w.id {
				leave = append(leave, s.leave...)
			}
		}
	}
	return leave, nil
}

// unseenNotes tell of controllers that nobody may look at, whose fields are then Git's.
func (p *planner) unseenNotes() []string {
	var notes []string
	for gk, found := range p.sharers {
		found.once.Do(func() {}) // who was not asked has nothing to say
		if found.unseen {
			notes = append(notes, fmt.Sprintf("%s (%s) may not be listed, so fields that one of them has a say in are not left to it; deploy/rbac/others.yaml gives the right", gk.Kind, gk.Group))
		}
	}
	slices.Sort(notes)
	return notes
}

// listSharers of a kind, as far as it is served and may be listed.
func (p *planner) listSharers(ctx context.Context, gk schema.GroupKind, namespace string) (all []sharer, unseen bool, err error) {
	r, served, err := p.catalog.kind(gk)
	if err != nil || !served {
		return nil, false, err
	}
	list, err := p.objects.Resource(r.GVR()).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		list, err = p.objects.Resource(r.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return nil, apierrors.IsForbidden(err), nil
		}
		return nil, false, err
	}
	for i := range list.Items {
		u := &list.Items[i]
		if u.GetLabels()[PartOfLabel] == p.unit.ID && !p.wanted[render.IDOf(u)] {
			continue // it goes with this plan
		}
		all = append(all, sharersOf(gk, formed(u))...)
	}
	return all, false, nil
}

func newSharers() map[schema.GroupKind]*sharers {
	return map[schema.GroupKind]*sharers{kindAutoscaler: {}, kindRollout: {}, kindCanary: {}}
}
