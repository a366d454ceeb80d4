package apply

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A server-side apply changes what it says, and removes what it said before. A field that somebody else added is no business of its: an
// exportTo that kubectl edit put on a VirtualService hides it from its users, and an apply sees no drift. What
// people do by hand with kubectl, or did before Mooring came, is therefore taken over: their entries in
// managedFields become ours, and the next apply removes what Git does not say. Fields of controllers are theirs and stay.

// byHand are the managers of what people write with kubectl. These are not taken over, because the
// command is about a field that Git does not speak of, or is undone by a take-over that nobody meant: kubectl-annotate and kubectl-label
// (how Mooring's own annotations are set), kubectl-rollout (a restart would be rolled back), kubectl-scale (who
// scales by hand does not say it in Git, and who says replicas in Git gets them by the apply itself).
func byHand(manager string) bool {
	switch manager {
	case "kubectl-client-side-apply", "kubectl-create", "kubectl-edit", "kubectl-expose", "kubectl-patch", "kubectl-replace", "kubectl-run",
		"kubectl-set",
		// What the API server calls the owner of everything that was there before the first server-side apply.
		"before-first-apply":
		return true
	default:
		return false
	}
}

// takes is true for an entry that a take-over makes ours: what was set by hand, and what the tools had that the object is adopted from.
func takes(entry metav1.ManagedFieldsEntry, from []Holder) bool {
	return isTakenOver(entry) ||
		entry.Subresource == "" && slices.ContainsFunc(from, func(h Holder) bool { return h.Tool.writes(entry.Manager) })
}

func isTakenOver(entry metav1.ManagedFieldsEntry) bool {
	if entry.Subresource != "" {
		return false
	}
	if entry.Operation == metav1.ManagedFieldsOperationApply {
		return entry.Manager == "kubectl" // kubectl apply --server-side
	}
	// What Mooring itself once patched, an offer to another Mooring for one, is as good as applied.
	return entry.Manager == FieldManager || byHand(entry.Manager)
}

// staysTheirs are fields that a take-over leaves with whom they belong to: what a user tells Mooring, what holds back a
// deletion or decides one, and what a controller reports.
func staysTheirs(path fieldpath.Path) bool {
	if len(path) == 0 || path[0].FieldName == nil {
		return false
	}
	switch *path[0].FieldName {
	case "status":
		return true
	case "metadata":
	default:
		return false
	}
	if len(path) < 2 || path[1].FieldName == nil {
		return false
	}
	switch *path[1].FieldName {
	case "finalizers", "ownerReferences":
		return true
	case "annotations", "labels":
		return len(path) > 2 && path[2].FieldName != nil && strings.HasPrefix(*path[2].FieldName, "mooring.dev/") &&
			*path[2].FieldName != HandoverAnnotation
	default:
		return false
	}
}

// lastApplied is kubectl's own memory. It goes when something else is taken over, and is no reason to.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// extra is a field that somebody set by hand and that Git does not say.
type extra struct {
	path fieldpath.Path
	by   writer
}

// extras of an object: what the take-over would remove. applied is the object as the dry-run of our apply gave it back.
func extras(live, applied metav1.Object, from []Holder, leave []path) []extra {
	var theirs []metav1.ManagedFieldsEntry
	survives := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		switch {
		case takes(entry, from):
			theirs = append(theirs, entry)
		case entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply:
			survives = survives.Union(fieldsOf(entry))
		}
	}
	if len(theirs) == 0 {
		return nil
	}
	if entry := appliedEntry(applied); entry != nil {
		survives = survives.Union(fieldsOf(*entry))
	}
	var found []extra
	for _, entry := range theirs {
		fieldsOf(entry).Leaves().Difference(survives).Iterate(func(p fieldpath.Path) {
			if staysTheirs(p) || isLastApplied(p) || coveredBy(leave, p) {
				return
			}
			found = append(found, extra{path: p.Copy(), by: writerOf(entry)})
		})
	}
	return found
}

// mayHaveExtras is asked where the apply cannot be tried: what was applied last stands for what will be. That may be too little, and then more is taken over than
// goes; to take over too little would leave it there, because the answer to the apply is remembered as right.
func mayHaveExtras(live metav1.Object, s Step) bool {
	return len(extras(live, live, nil, s.leave)) > 0
}

func isLastApplied(p fieldpath.Path) bool {
	return len(p) == 3 && p[2].FieldName != nil && *p[2].FieldName == lastApplied
}

// takenOver gives managedFields in which what was set by hand is ours.
func takenOver(entries []metav1.ManagedFieldsEntry, from []Holder, leave []path) ([]metav1.ManagedFieldsEntry, error) {
	var kept []metav1.ManagedFieldsEntry
	var ours *metav1.ManagedFieldsEntry
	fields := fieldpath.NewSet()
	for _, entry := range entries {
		switch {
		case entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "":
			ours = &entry
			fields = fields.Union(fieldsOf(entry))
		case takes(entry, from):
			theirs, left := split(fieldsOf(entry), leave)
			fields = fields.Union(theirs)
			if ours == nil {
				ours = &metav1.ManagedFieldsEntry{
					Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
					APIVersion: entry.APIVersion, FieldsType: entry.FieldsType, Time: entry.Time,
				}
			}
			if left.Empty() {
				continue
			}
			raw, err := rawFields(left)
			if err != nil {
				return nil, err
			}
			entry.FieldsV1 = raw
			kept = append(kept, entry)
		default:
			kept = append(kept, entry)
		}
	}
	if ours == nil {
		return entries, nil
	}
	raw, err := rawFields(fields)
	if err != nil {
		return nil, err
	}
	ours.FieldsV1 = raw
	return append(kept, *ours), nil
}

// split a set into what is taken over and what is left with its manager.
func split(all *fieldpath.Set, leave []path) (taken, left *fieldpath.Set) {
	left = fieldpath.NewSet()
	all.Iterate(func(p fieldpath.Path) {
		if staysTheirs(p) || coveredBy(leave, p) {
			left.Insert(p.Copy())
		}
	})
	return all.Difference(left), left
}

// managersOf extras other than ourselves, each once, sorted.
func managersOf(found []extra) []string {
	var names []string
	for _, e := range found {
		if e.by.manager != FieldManager {
			names = append(names, e.by.manager)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
