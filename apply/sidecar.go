package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// widen arranges the update of a Sidecar. A proxy learns of what a route leads to with the route at the latest, but then the cluster comes in one
// push with the route, and its endpoints after both: for a moment the route leads to a cluster that is not ready. So what a Sidecar names anew it names
// before the routes change, and what it names no more it drops after them.
func widen(s Step) []Step {
	if s.Action != Update || s.live == nil || s.applied == nil {
		return []Step{s}
	}
	both, gains, loses := joinEgress(s.applied, s.live)
	switch {
	case !gains:
		return []Step{s}
	case !loses:
		s.stage, s.settle = stageDestinations, false
		return []Step{s}
	}
	first, last := s, s
	first.stage, first.settle = stageDestinations, false
	joined, _, _ := joinEgress(s.want.get(), s.live)
	first.want = formed(joined)
	first.applied, first.hash = both, ""
	first.Diff = append(diffObjects(s.ID, s.live, both), s.taken...)
	first.Reason = join(s.Reason, "keeps what it let in until the routes have changed")
	last.settle, last.again = true, true
	last.needs = append(slices.Clone(s.needs), s.ID)
	last.take, last.precondition, last.Reason = false, "", ""
	last.Diff = diffObjects(s.ID, both, s.applied)
	return []Step{first, last}
}

// joinEgress gives a Sidecar as it is to be, with the hosts besides that the live one lets in, and says whether there are hosts that only the one
// or only the other has. Where the two differ in more than hosts there is no such form, and neither is said to have any.
func joinEgress(want, live *unstructured.Unstructured) (both *unstructured.Unstructured, gains, loses bool) {
	both = want.DeepCopy()
	unstructured.RemoveNestedField(both.Object, "metadata", "annotations", AppliedAnnotation)
	after, before := mapsAt(both.Object, "spec", "egress"), mapsAt(live.DeepCopy().Object, "spec", "egress")
	if len(after) != len(before) {
		return both, false, false
	}
	var listeners []any
	for i, listener := range after {
		now, then := letIn(listener), letIn(before[i])
		delete(listener, "hosts")
		delete(before[i], "hosts")
		if !equality.Semantic.DeepEqual(listener, before[i]) {
			return both, false, false
		}
		hosts := slices.Clone(now)
		for _, host := range then {
			if !slices.Contains(now, host) {
				hosts, loses = append(hosts, host), true
			}
		}
		gains = gains || len(hosts) > len(then)
		listener["hosts"] = anySlice(hosts)
		listeners = append(listeners, listener)
	}
	return both, gains, loses && unstructured.SetNestedSlice(both.Object, listeners, "spec", "egress") == nil
}

// letIn are the hosts of an egress listener; "~/*" stands for none.
func letIn(listener map[string]any) []string {
	return slices.DeleteFunc(textsAt(listener, "hosts"), func(host string) bool { return strings.HasPrefix(host, "~") })
}
