package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// An object that nobody keeps is adopted in silence: Git is right. One that another tool keeps is not: two tools that hold one object put it back and
// forth, or one prunes it under the other. So its plan is refused (HeldError says who holds what) until a human names the tool to adopt from,
// Policy.Adopt, for one revision. Then, in one run:
//
//   - the tool's entries in managedFields become ours, together with the removal of the labels and annotations by which the tool knows the
//     object and prunes it: one patch, bound to the resourceVersion;
//   - one forced apply, bound to what that patch left, puts our label on the object and removes what the tool had set and Git does not say.
//
// A crash between the two leaves an object that nobody keeps and that Git wants: the next pass adopts it, with nothing lost. It happens once: what is ours is
// never looked at for signs of tools again, except before it is deleted. What a tool has outside of the object, a release of Helm or an Application,
// is never touched; Holder.Aftercare says what to do about it.
//
// Signs that Git itself writes, because manifests were exported with them, are what Git says, and stay.

// HeldError refuses an object that another tool manages.
type HeldError struct {
	Holders []Holder
	// Fights says which of them is at work at this moment, and how to stop it; empty when none is, as far as can be seen.
	Fights []string

	unit string
}

// Error says who holds it and how to go on.
func (e *HeldError) Error() string {
	var who []string
	adoptable := true
	for _, h := range e.Holders {
		who = append(who, h.String())
		adoptable = adoptable && h.Tool != ToolController
	}
	text := "is managed by " + strings.Join(who, " and by ")
	if len(e.Fights) > 0 {
		text += "; " + strings.Join(e.Fights, "; ")
	}
	if !adoptable {
		return text + ". A controller makes its objects anew, so it cannot be adopted: take it out of Git, or take metadata.ownerReferences off the object"
	}
	var tools []string
	for _, t := range toolsOf(e.Holders) {
		tools = append(tools, string(t))
	}
	namespace, name, _ := strings.Cut(e.unit, "/")
	return text + fmt.Sprintf(". Mooring takes nothing from another tool unasked. To see what adopting it changes: mooring adopt %s -n %s --from %s",
		name, namespace, strings.Join(tools, ","))
}

// held decides about a live object that is not ours: nobody's (no holders), to be adopted from these, or refused.
func (p *planner) held(ctx context.Context, id render.ID, m metav1.Object) ([]Holder, error) {
	owner := m.GetLabels()[PartOfLabel]
	if isOurs(m) && (owner == p.unit.ID || offered(m, p.unit.ID)) {
		return nil, nil
	}
	holders := holdersOf(id, m, p.unit.ID)
	if offered(m, p.unit.ID) {
		holders = slices.DeleteFunc(holders, func(h Holder) bool { return h.Tool == ToolApplySet })
	}
	if owner != "" && owner != p.unit.ID && !offered(m, p.unit.ID) {
		// Another Mooring hands over; only what nobody in this cluster knows of can be taken.
		if name := p.nameOf(ctx, owner); name != "" || p.unit.Moorings == nil {
			return nil, &ForeignError{Owner: owner, Name: name}
		}
	}
	if len(holders) == 0 {
		return nil, nil
	}
	if !slices.ContainsFunc(holders, func(h Holder) bool { return !slices.Contains(p.policy.Adopt, h.Tool) }) {
		return holders, nil
	}
	return nil, &HeldError{Holders: holders, Fights: p.fights(ctx, holders), unit: p.unit.Name}
}

// adopt makes the step one that adopts from holders.
func (p *planner) adopt(ctx context.Context, step Step, full metav1.Object, holders []Holder) (Step, string) {
	if len(holders) == 0 {
		return step, ""
	}
	step.From, step.take, step.precondition = holders, true, full.GetResourceVersion()
	var who []string
	for _, h := range holders {
		who = append(who, h.String())
	}
	reason := "adopts from " + strings.Join(who, " and from ")
	for _, fight := range p.fights(ctx, holders) {
		reason += "; " + fight
	}
	if stripped := strippedKeys(full, step.want.get(), holders); len(stripped) > 0 {
		reason += "; strips " + strings.Join(stripped, ", ")
	}
	return step, reason
}

func strippedKeys(live metav1.Object, want *unstructured.Unstructured, holders []Holder) []string {
	var keys []string
	for _, s := range stripped(live, want, holders) {
		keys = append(keys, s.key)
	}
	return keys
}

// stripped are the signs that an adoption takes off: those that Git does not say.
func stripped(live metav1.Object, want *unstructured.Unstructured, holders []Holder) []trace {
	var all []trace
	for _, h := range holders {
		for _, s := range h.signs {
			_, said, _ := unstructured.NestedString(want.Object, "metadata", s.field, s.key)
			if s.value(live) != "" && !said && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// strippedDiffs show what the take-over does not show already.
func strippedDiffs(live metav1.Object, want *unstructured.Unstructured, holders []Holder, shown []FieldDiff) []FieldDiff {
	var diffs []FieldDiff
	for _, s := range stripped(live, want, holders) {
		path := "/metadata/" + s.field + "/" + escape(s.key)
		if !slices.ContainsFunc(shown, func(d FieldDiff) bool { return d.Path == path }) {
			diffs = append(diffs, FieldDiff{Path: path, Live: s.value(live)})
		}
	}
	return diffs
}

// strip gives the patches that take a tool's hands off the object.
func strip(m *metav1.PartialObjectMetadata, s Step) []patch {
	var patches []patch
	for _, t := range stripped(m, s.want.get(), s.From) {
		patches = append(patches, patch{"remove", "/metadata/" + t.field + "/" + escape(t.key), nil})
	}
	for _, h := range s.From {
		if h.owner == nil {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == h.owner.UID })
		if len(kept) == 0 {
			patches = append(patches, patch{"remove", "/metadata/ownerReferences", nil})
		} else if len(kept) < len(m.OwnerReferences) {
			patches = append(patches, patch{"replace", "/metadata/ownerReferences", kept})
		}
	}
	return patches
}

// mayWrite is true for an object that is this unit's, nobody's, offered to it, or in the set that the step adopts from.
func mayWrite(m metav1.Object, unit string, s Step) bool {
	owner := m.GetLabels()[PartOfLabel]
	return owner == "" || owner == unit || offered(m, unit) ||
		slices.ContainsFunc(s.From, func(h Holder) bool { return h.Tool == ToolApplySet && h.Name == owner })
}
