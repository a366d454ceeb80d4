package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/world"
)

// doubleRule finds DestinationRules for a host that has one, as far as they are lost.
//
// Istio joins rules of one namespace for one host, the oldest first: subsets of new names are added, and traffic policy is taken from the first rule that
// has one. Rules that share the work, one with the traffic policy and the others with subsets, are joined without a loss, and are legal.
var doubleRule = meshRule{
	Rule: Rule{
		Code: "MOOR021", Level: Warning,
		Title: "another DestinationRule is for the same host, and a part of this one counts for nothing",
		Mend:  "write one rule for the host",
	},
	check: func(_ context.Context, v *view) {
		byHost := map[string][]destinationRule{}
		for o, spec := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
			d := destinationRule{object: o, DestinationRule: spec, created: v.born(o)}
			byHost[d.scope()] = append(byHost[d.scope()], d)
		}
		for _, scope := range slices.Sorted(maps.Keys(byHost)) {
			rules := byHost[scope]
			slices.SortStableFunc(rules, func(a, b destinationRule) int { return a.created.Compare(b.created) })
			for i, d := range rules {
				for _, older := range rules[:i] {
					v.reportLost(older, d)
				}
			}
		}
	},
}

// destinationRule is a DestinationRule and its age.
type destinationRule struct {
	object *world.Object
	*networking.DestinationRule
	created time.Time
}

// scope is what rules have in common that are joined, or of which one hides the other.
func (d destinationRule) scope() string {
	return fmt.Sprint(fullHost(d.GetHost(), d.object.ID.Namespace), " in ", d.object.ID.Namespace, d.GetWorkloadSelector().GetMatchLabels())
}

// exported is what exportTo says, in one order.
func (d destinationRule) exported() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(d.GetExportTo()))), ",")
}

// servesOwn says whether callers of the rule's own namespace see it.
func (d destinationRule) servesOwn() bool {
	return len(d.GetExportTo()) == 0 || slices.ContainsFunc(d.GetExportTo(), func(ns string) bool { return ns == "." || ns == "*" || ns == d.object.ID.Namespace })
}

// reportLost says what an older rule for the same host leaves of a younger one.
func (v *view) reportLost(older, younger destinationRule) {
	why := older.object.ID.String() + " is for the same host and is older"
	if older.created.Equal(younger.created) {
		why = older.object.ID.String() + " is for the same host and comes first by name"
	}
	if older.exported() != younger.exported() && len(younger.GetWorkloadSelector().GetMatchLabels()) == 0 {
		if older.servesOwn() && younger.servesOwn() {
			v.report(younger.object, problem{
				Field:   "spec.exportTo",
				Message: fmt.Sprintf("%s is for the same host with another exportTo: callers in %s see both and go by the younger one alone", older.object.ID, younger.object.ID.Namespace),
			})
		}
		return
	}
	if a, b := older.GetTrafficPolicy(), younger.GetTrafficPolicy(); a != nil && b != nil && !proto.Equal(a, b) {
		v.report(younger.object, problem{
			Field:   "spec.trafficPolicy",
			Message: "counts for nothing: " + why + ", and has a traffic policy, which is taken as a whole",
		})
	}
	for i, s := range younger.GetSubsets() {
		for _, first := range older.GetSubsets() {
			if first.GetName() == s.GetName() && !proto.Equal(first, s) {
				v.report(younger.object, problem{
					Field:   index("spec.subsets", i),
					Message: fmt.Sprintf("counts for nothing: %s, and has a subset %s", why, s.GetName()),
				})
			}
		}
	}
}

// born is when an object was made. What does not live yet is younger than all that does; the set does not say when its objects were made.
func (v *view) born(o *world.Object) time.Time {
	if v.before == nil {
		return o.Unstructured().GetCreationTimestamp().Time
	}
	if lives := v.before.Find(o.ID); lives != nil {
		return lives.Unstructured().GetCreationTimestamp().Time
	}
	return time.Unix(1<<40, 0)
}
