package check

import (
	"encoding/json"
	"sync"

	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/resource"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/legacy"
	"github.com/mooring-dev/mooring/render/check/schema"
)

// subject is one object with what the rules want to know about it, found out once.
type subject struct {
	render.Object
	id    render.ID
	kinds kindIndex
	// schema of an Istio kind in a version that is served; nil for everything else.
	schema resource.Schema
	// faults of strict decoding, sorted by the rule that reports them.
	faults faults
	// config is the decoded object; nil when it is not of an Istio kind or has faults.
	config *config.Config
	// decodeErr is what the library said about an object in which our own reading found no fault.
	decodeErr error
	// warning and err are Istio's answer, once validated.
	validated    bool
	warning, err error
	// schemas are the definitions; nil asks none.
	schemas *schema.Library
	// refusals are what the definition forbids, once compared; said marks those that Istio's validation says too, at fields.
	compared bool
	refusals []schema.Fault
	said     []bool
	fields   map[string]string
	// old is what earlier versions of Istio read, once asked for.
	old func() []legacy.Change
}

// root is the object as it was written: the accessors of Unstructured leave out what has not the type that they expect.
func (s *subject) root() map[string]any {
	return s.Unstructured().Object
}

func newSubject(kinds kindIndex, o render.Object) *subject {
	s := &subject{Object: o, id: o.ID(), kinds: kinds}
	s.schema = kinds.find(o.GroupVersionKind())
	s.old = sync.OnceValue(func() []legacy.Change { return legacy.Fields(s.root()) })
	s.faults = readStrictly(s.schema, s.root())
	if s.schema != nil && !s.faults.hideTheRest() {
		s.config, s.decodeErr = s.decode()
	}
	return s
}

// decode reads the object's spec into Istio's own type, refusing what that does not know.
func (s *subject) decode() (*config.Config, error) {
	spec, err := s.schema.NewInstance()
	if err != nil {
		return nil, err
	}
	raw, ok := s.root()["spec"].(map[string]any)
	if !ok {
		raw = map[string]any{}
	}
	js, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	if err := config.ApplyJSONStrict(spec, string(js)); err != nil {
		return nil, err
	}
	return &config.Config{
		Meta: config.Meta{
			GroupVersionKind: s.schema.GroupVersionKind(),
			Name:             s.GetName(),
			Namespace:        s.GetNamespace(),
			Labels:           s.GetLabels(),
			Annotations:      s.GetAnnotations(),
			Domain:           "cluster.local",
		},
		Spec: spec,
	}, nil
}
