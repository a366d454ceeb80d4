package apply

import (
	"fmt"
	"slices"

	apilabels "k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-dev/mooring/render"
)

// IgnoreRule names fields that are left to others.
type IgnoreRule struct {
	// Target picks objects; what is empty picks all.
	Target Target
	// Paths are JSON pointers, in which * stands for any item of a list.
	Paths []string
}

// Target picks objects of Git.
type Target struct {
	Group, Kind, Namespace, Name string
	// Labels that the object has in Git; nil picks all.
	Labels apilabels.Selector
}

func (t Target) picks(id render.ID, f *form) bool {
	return (t.Group == "" || t.Group == id.Group) && (t.Kind == "" || t.Kind == id.Kind) &&
		(t.Namespace == "" || t.Namespace == id.Namespace) && (t.Name == "" || t.Name == id.Name) &&
		(t.Labels == nil || t.Labels.Matches(apilabels.Set(f.get().GetLabels())))
}

// ignoreFields gives each object the paths that the rules leave to others.
func ignoreFields(all []wanted, rules []IgnoreRule) {
	for _, rule := range rules {
		for i := range all {
			w := &all[i]
			if !rule.Target.picks(w.id, w.form) {
				continue
			}
			for _, pointer := range rule.Paths {
				w.leave = append(w.leave, parsePath(pointer))
			}
		}
	}
}

// ignoreNotes tell of rules that say nothing of any object, which are mistyped more often than not.
func ignoreNotes(all []wanted, rules []IgnoreRule) []string {
	var notes []string
	for i, rule := range rules {
		picked := 0
		for _, pointer := range rule.Paths {
			matched := false
			for _, w := range all {
				if rule.Target.picks(w.id, w.form) {
					picked++
					matched = matched || has(w.form.get().Object, parsePath(pointer).toItem())
				}
			}
			if picked > 0 && !matched {
				notes = append(notes, fmt.Sprintf("spec.drift.ignore[%d]: %s is in none of the objects that the target picks", i, pointer))
			}
		}
		if picked == 0 {
			notes = append(notes, fmt.Sprintf("spec.drift.ignore[%d]: the target picks no object of the path", i))
		}
	}
	return notes
}

// toItem cuts a path behind its last item of a list: what is in an item may be there in the cluster alone.
func (p path) toItem() path {
	for i := len(p) - 1; i >= 0; i-- {
		if isItem(p[i]) {
			return p[:i+1]
		}
	}
	return p
}

// has is true when a path leads to something, or ends in an item of a list.
func has(at any, p path) bool {
	if len(p) == 0 || len(p) == 1 && isItem(p[0]) {
		return true
	}
	switch v := at.(type) {
	case map[string]any:
		next, ok := v[p[0]]
		return ok && has(next, p[1:])
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return has(item, p[1:]) }) && isItem(p[0])
	default:
		return false
	}
}
