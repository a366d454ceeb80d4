package istiod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
)

// doubtAfter is when it is asked why an istiod does not show an object. Most are there within milliseconds.
const doubtAfter = time.Second

// unseen are the objects that one istiod has yet to show, by their ids.
type unseen map[render.ID]apply.Written

// unseenOf takes the last word about each object, of the kinds that the istiod reads. Services are in another list.
func unseenOf(written []apply.Written, reads map[schema.GroupKind]schema.GroupVersionKind) (objects, services unseen) {
	objects, services = make(unseen), make(unseen)
	for _, w := range written {
		gk := schema.GroupKind{Group: w.ID.Group, Kind: w.ID.Kind}
		if _, read := reads[gk]; read && strings.HasSuffix(gk.Group, ".istio.io") {
			objects[w.ID] = w
		} else if gk == (schema.GroupKind{Kind: "Service"}) {
			services[w.ID] = w
		}
	}
	return objects, services
}

// current is true when what istiod shows is what was written, or newer.
func current(w apply.Written, uid types.UID, version string) bool {
	if w.Deleted {
		return uid != "" && w.UID != "" && uid != w.UID // another object of that name
	}
	if version == w.ResourceVersion {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, w.ResourceVersion)
	return err == nil && order > 0
}

// look asks which objects istiod shows, and gives those that it does not show as they were written.
func (u unseen) look(ctx context.Context, l *line) (unseen, error) {
	shown := make(map[render.ID]bool)
	left := make(unseen)
	err := l.configs(ctx, func(h head) {
		group := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind).Group
		id := render.ID{Group: group, Kind: h.Kind, Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
		if w, wanted := u[id]; wanted {
			shown[id] = true
			if !current(w, h.Metadata.UID, h.Metadata.ResourceVersion) {
				left[id] = w
			}
		}
	})
	for id, w := range u {
		if !shown[id] && !w.Deleted {
			left[id] = w
		}
	}
	return left, err
}

// lookAtServices is the same for Services, which istiod shows without their UIDs.
func (u unseen) lookAtServices(ctx context.Context, l *line) (unseen, error) {
	shown := make(map[render.ID]bool)
	left := make(unseen)
	err := l.services(ctx, func(s service) {
		if s.Attributes.ServiceRegistry != "Kubernetes" {
			return
		}
		id := render.ID{Kind: "Service", Namespace: s.Attributes.Namespace, Name: s.Attributes.Name}
		if w, wanted := u[id]; wanted {
			shown[id] = true
			if !current(w, "", s.ResourceVersion) {
				left[id] = w
			}
		}
	})
	for id, w := range u {
		if !shown[id] && !w.Deleted {
			left[id] = w
		}
	}
	return left, err
}

// excused is true for an object that this istiod is right not to show: somebody has deleted it since, it is for another
// revision, or in a namespace in which istiod does not read.
func (i *instance) excused(ctx context.Context, id render.ID) (bool, error) {
	kind := i.reads[schema.GroupKind{Group: id.Group, Kind: id.Kind}]
	object, err := i.mesh.client.metadata.Resource(resourceOf(kind)).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, nil // it was written a moment ago, so this is a fault of the moment
	}
	if revision, for1 := object.Labels[revisionLabel]; for1 && revision != i.revision {
		return true, nil // or for a revision tag that leads here, whose istiod shows it or will in a moment
	}
	selectors, err := i.line.selectors(ctx)
	if err != nil || len(selectors) == 0 {
		return false, err
	}
	namespace, err := i.mesh.client.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, id.Namespace, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsForbidden(err) || apierrors.IsNotFound(err), nil
	}
	return !selected(selectors, namespace.Labels), nil
}

// selected is true when istiod reads in a namespace with these labels.
func selected(selectors []metav1.LabelSelector, of map[string]string) bool {
	return slices.ContainsFunc(selectors, func(s metav1.LabelSelector) bool {
		selector, err := metav1.LabelSelectorAsSelector(&s)
		return err == nil && selector.Matches(labels.Set(of))
	})
}

// resourceOf a kind of Istio's, all of which are called as English does.
func resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	name := strings.ToLower(kind.Kind)
	if stem, y := strings.CutSuffix(name, "y"); y && !strings.HasSuffix(stem, "a") {
		name = stem + "ies"
	} else {
		name += "s"
	}
	return kind.GroupVersion().WithResource(name)
}

// see asks what the istiod has read of what was written. It is done when nothing is left.
func (i *instance) see(ctx context.Context, began time.Time) (done bool, err error) {
	if len(i.objects) > 0 {
		if i.objects, err = i.objects.look(ctx, i.line); err != nil {
			return false, err
		}
	}
	if len(i.services) > 0 {
		if i.services, err = i.services.lookAtServices(ctx, i.line); err != nil {
			return false, err
		}
	}
	if time.Since(began) < doubtAfter {
		return len(i.objects)+len(i.services) == 0, nil
	}
	// A Service may come from several clusters, and shows the version of one. The mesh's coming to rest has to be enough.
	i.services = nil
	for id := range i.objects {
		excused, err := i.excused(ctx, id)
		var unaskable *unaskableError
		if err != nil && !errors.As(err, &unaskable) {
			return false, err
		}
		if excused {
			delete(i.objects, id)
		}
	}
	return len(i.objects) == 0, nil
}

// unseen says what is left, for a person.
func (i *instance) unseen() []string {
	var all []string
	for id, w := range i.objects {
		as := "as it was written"
		if w.Deleted {
			as = "as deleted"
		}
		all = append(all, fmt.Sprintf("%s does not show %s %s", i.name, id, as))
	}
	return all
}
