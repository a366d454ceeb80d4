package analysis

import (
	"fmt"

	"istio.io/istio/pkg/config/analysis/diag"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// verdict is what becomes of a message.
type verdict struct {
	keep bool
	// field that is at fault.
	field string
	// text that stands for the library's words; empty to leave them.
	text string
	// group is what the message has in common with others of its object, of which the first by its text is kept; empty for none.
	group string
}

// claim is a message while it is judged.
type claim struct {
	diag.Message
	code   string
	object *world.Object
	origin *origin
}

// field that the analyzer named, or else the one that its code is about. Finding it takes longer than most judgements, which drop the message.
func (c *claim) field() string {
	if f := c.origin.field(c.Line); f != "" {
		return f
	}
	if f := usualField(c); c.origin.has(f) {
		return f
	}
	return ""
}

// value of the field that the analyzer named.
func (c *claim) value() any {
	if c.origin.field(c.Line) == "" {
		return nil
	}
	return c.origin.values[c.Line]
}

// parameter of a message, as a text.
func (c *claim) parameter(i int) string {
	if i >= len(c.Parameters) {
		return ""
	}
	return fmt.Sprint(c.Parameters[i])
}

// namespace of the object.
func (c *claim) namespace() string {
	return c.object.ID.Namespace
}

// kept is the verdict that the message stands.
func (c *claim) kept() verdict {
	return verdict{keep: true, field: c.field()}
}

// at is the verdict that it stands, about another field where the object has that.
func (c *claim) at(field string) verdict {
	if c.origin.has(field) {
		return verdict{keep: true, field: field}
	}
	return c.kept()
}

// said is the verdict that it stands in other words: the library's, with other values.
func (c *claim) said(field string, values ...any) verdict {
	v := c.at(field)
	v.text = fmt.Sprintf(c.Type.Template(), values...)
	return v
}

// judge decides whether what an analyzer says of what it was given is so in the mesh.
func (r *run) judge(m diag.Message) verdict {
	c := &claim{Message: m, code: m.Type.Code(), origin: originOf(m.Resource)}
	if c.origin == nil {
		return verdict{keep: true}
	}
	if c.object = c.origin.object; c.object == nil {
		return verdict{} // about something made up
	}
	if judge := judges()[c.code]; judge != nil {
		return judge(r, c)
	}
	return c.kept()
}

// judges of the codes that need one: those that follow from an absence, and those that the library gets wrong.
func judges() map[string]func(*run, *claim) verdict {
	return map[string]func(*run, *claim) verdict{
		"IST0101": (*run).missing,
		"IST0102": (*run).emptyNamespace,
		"IST0109": (*run).sharedHost,
		"IST0110": (*run).sharedWorkload,
		"IST0126": (*run).unknownRegistry,
		"IST0127": (*run).policyWithoutWorkloads,
		"IST0128": (*run).untrue,
		"IST0129": (*run).untrue,
		"IST0132": (*run).unservedHost,
		"IST0134": (*run).ofMesh,
		"IST0139": (*run).webhook,
		"IST0140": (*run).subsetAtGateway,
		"IST0145": (*run).sharedPort,
		"IST0146": (*run).unfilledImage,
		"IST0149": (*run).uncheckedClaim,
		"IST0157": (*run).ofMesh,
		"IST0159": (*run).sharedWorkload,
		"IST0161": (*run).badSecret,
		"IST0162": (*run).unledPort,
		"IST0173": (*run).emptySubset,
		"IST0174": (*run).ruleWithoutHost,
		"IST0177": (*run).sharedEntry,
	}
}

// usualField is what a code is about where the analyzer does not say.
func usualField(c *claim) string {
	switch c.code {
	case "IST0107", "IST0108", "IST0125", "IST0135":
		return join("metadata.annotations", c.parameter(0))
	case "IST0123":
		return "metadata.labels"
	case "IST0127", "IST0159", "IST0162", "IST0166":
		return "spec.selector"
	case "IST0110":
		return "spec.workloadSelector"
	case "IST0157":
		return "spec.accessLogging"
	case "IST0171":
		return "status.conditions"
	case "IST0174":
		return "spec.host"
	case "IST0002":
		if c.object.ID.Kind == "Sidecar" {
			return "spec.outboundTrafficPolicy.egressProxy"
		}
	}
	return ""
}

// untrue is what the library says and its own generators do not bear out: see [Never].
func (r *run) untrue(*claim) verdict {
	return verdict{}
}

// notKnown makes the message a question that could not be answered, for want of a kind.
func (r *run) notKnown(c *claim, what, name, group, kind string) verdict {
	r.unknown.add(c.code, what, name, r.why(group, kind))
	return verdict{}
}

// why a kind is not known.
func (r *run) why(group, kind string) string {
	if !r.world.Live() {
		return "no cluster was asked, and the files have no such " + kind
	}
	if why := r.world.Why(group, kind); why != "" {
		return why
	}
	return "metadata of each " + kind + " is all that was read"
}

// knowsAll says whether all objects of a kind are known. A set alone never is a whole mesh.
func (r *run) knowsAll(group, kind string) bool {
	return r.world.Live() && r.world.Knows(group, kind, "")
}

// find an object by its name.
func (r *run) find(group, kind, namespace, name string) *world.Object {
	return r.world.Find(render.ID{Group: group, Kind: kind, Namespace: namespace, Name: name})
}
