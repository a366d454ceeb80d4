package render

import (
	"context"
	"fmt"
)

// Expander gives objects that only Mooring knows a meaning what they stand for: an AppConfiguration or an IstioOperator is written for people, and
// what the cluster gets are the objects that it describes. The consumer of the interface is [Renderer]; packages render/app and render/mesh implement it.
type Expander interface {
	// Expand gives all the objects again, with those of the expander's own kinds replaced by what they stand for. It sees all, because what
	// one stands for may depend on others, such as the ports of a Service beside it. The same objects give the same objects: no clock, no network,
	// no order of a map. objects and what they hold belong to others and are not written to. Objects that it makes have the Origin of the
	// object that they come from, and its ID in From. A fault that the author of the repository can mend is an [*Error], or several joined.
	Expand(ctx context.Context, objects []Object) ([]Object, []Warning, error)
}

// Warning is something that was rendered and that its author should know: a word that has another meaning today, say.
type Warning struct {
	// Object is what was written, not what became of it.
	Object ID
	Origin Origin
	// Field is the path in the object, such as spec.destinationRule.trafficPolicy; may be empty.
	Field string
	// Text says what is so, and Hint what to do; Hint may be empty.
	Text, Hint string
}

// String writes "overlays/prod/reviews.yaml:12: AppConfiguration/apps/reviews: spec.x: what is so; what to do".
func (w Warning) String() string {
	s := w.Object.String()
	if w.Origin.File != "" {
		s = fmt.Sprintf("%s: %s", w.Origin, s)
	}
	if w.Field != "" {
		s += ": " + w.Field
	}
	s += ": " + w.Text
	if w.Hint != "" {
		s += "; " + w.Hint
	}
	return s
}

// At says where in the repository a field of the object was written, as far as it is known: path leads to it from the object's root, with the
// index of a list item as a number in decimal. It is the Origin of the object when the field's own place is not known.
//
// What wrote the field last is named: a patch of an overlay, the namespace of a kustomization, the generator of a ConfigMap, or the document of the
// object. When that is not certain, or nothing has the field, the nearest field around it is taken.
func (o Object) At(path ...string) Origin {
	return o.where(path)
}

// expand lets every expander do its part, in order.
func (r *Renderer) expand(ctx context.Context, objects []Object) ([]Object, []Warning, error) {
	var warnings []Warning
	for _, e := range r.Expanders {
		expanded, more, err := e.Expand(ctx, objects)
		if err != nil {
			return nil, nil, err
		}
		objects, warnings = expanded, append(warnings, more...)
	}
	return objects, warnings, nil
}
