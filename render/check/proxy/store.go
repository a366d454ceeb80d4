package proxy

import (
	"errors"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/collection"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/kube/krt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render/check/world"
)

// store is the objects that istiod would read from the API server. It never changes.
type store struct {
	byKind map[config.GroupVersionKind][]config.Config
	stop   <-chan struct{}
}

// newStore takes the objects of the kinds that routes and clusters depend on.
func newStore(w *world.World, m *markers, age func(*world.Object) metav1.Time, stop <-chan struct{}) *store {
	s := &store{byKind: map[config.GroupVersionKind][]config.Config{}, stop: stop}
	for _, kind := range []config.GroupVersionKind{
		gvk.VirtualService, gvk.DestinationRule, gvk.Gateway, gvk.Sidecar, gvk.EnvoyFilter, gvk.ServiceEntry, gvk.WorkloadEntry,
	} {
		for _, o := range w.Of(kind.Group, kind.Kind) {
			c := o.Config()
			if c == nil || o.MetadataOnly {
				continue
			}
			copied := *c
			if kind == gvk.VirtualService {
				copied = m.mark(o, *c)
			}
			copied.GroupVersionKind = kind
			copied.CreationTimestamp = age(o).Time
			s.byKind[kind] = append(s.byKind[kind], copied)
		}
	}
	return s
}

// List gives the objects of a kind; the library sorts them in place, so that it gets a list of its own.
func (s *store) List(kind config.GroupVersionKind, namespace string) []config.Config {
	var out []config.Config
	for _, c := range s.byKind[kind] {
		if namespace == "" || c.Namespace == namespace {
			out = append(out, c)
		}
	}
	return out
}

// Get finds one object.
func (s *store) Get(kind config.GroupVersionKind, name, namespace string) *config.Config {
	for _, c := range s.byKind[kind] {
		if c.Name == name && c.Namespace == namespace {
			return &c
		}
	}
	return nil
}

// KrtCollection is a kind in the form that the library derives things from.
func (s *store) KrtCollection(kind config.GroupVersionKind) krt.Collection[config.Config] {
	return krt.NewStaticCollection(nil, s.byKind[kind], krt.WithStop(s.stop), krt.WithName(kind.Kind))
}

// Schemas of the kinds that the library may ask for.
func (s *store) Schemas() collection.Schemas { return collections.Pilot }

// RegisterEventHandler is for stores that change.
func (s *store) RegisterEventHandler(config.GroupVersionKind, model.EventHandler) {}

// Run is for stores that read from somewhere.
func (s *store) Run(<-chan struct{}) {}

// HasSynced says that all is here.
func (s *store) HasSynced() bool { return true }

var errReadOnly = errors.New("write an object: a world is only read")

// Create is refused, as are all that write.
func (s *store) Create(config.Config) (string, error) { return "", errReadOnly }

// Update is refused.
func (s *store) Update(config.Config) (string, error) { return "", errReadOnly }

// UpdateStatus is refused.
func (s *store) UpdateStatus(config.Config) (string, error) { return "", errReadOnly }

// Patch is refused.
func (s *store) Patch(config.Config, config.PatchFunc) (string, error) { return "", errReadOnly }

// Delete is refused.
func (s *store) Delete(config.GroupVersionKind, string, string, *string) error { return errReadOnly }
