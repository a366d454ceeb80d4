package apply

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Fields that others own on purpose are left to them: what Git says there counts when the object is made, and never again. They are
// paths, found from what lives (shared.go) or given by the user (Policy.Ignore). An apply can leave a field out, and then it does not touch
// it. It cannot do so in two cases, and then it says what lives:
//
//   - The field lies in a list. Lists are one value to an apply wherever their schema does not say otherwise, as spec.http of a
//     VirtualService, so the live value is put into the item of Git's list that is the same but for what is ignored (or has the same name, or the
//     same place where that says nothing).
//   - Nobody but us owns the field: to leave it out would give it up, and the server would put its default there. A Deployment of five
//     would have one replica until its autoscaler looks again. So the live value is applied until the other one has written to it.
//
// What lives is read again right before the write, which is bound to that resourceVersion: a weight that moves meanwhile is not set back.

// path to a field: the tokens of a JSON pointer. "*" is any item of a list, and "name=x" the one of that name.
type path []string

// parsePath reads a JSON pointer (RFC 6901).
func parsePath(pointer string) path {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return tokens
}

func (p path) String() string {
	var b strings.Builder
	for _, t := range p {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

// inList is true when a token stands for an item of a list.
func (p path) inList() bool {
	return slices.ContainsFunc(p, isItem)
}

func isItem(token string) bool {
	_, err := strconv.Atoi(token)
	return token == "*" || err == nil || strings.HasPrefix(token, "name=") || strings.HasPrefix(token, managedRoute)
}

// managedRoute begins the last token of a path to items of a list that somebody else puts there.
const managedRoute = "managed="

// covers is true for a field at the path or below it.
func (p path) covers(field fieldpath.Path) bool {
	if len(field) < len(p) {
		return false
	}
	for i, token := range p {
		switch name := field[i].FieldName; {
		case name == nil && !isItem(token), name != nil && *name != token:
			return false
		}
	}
	return true
}

func coveredBy(paths []path, field fieldpath.Path) bool {
	return slices.ContainsFunc(paths, func(p path) bool { return p.covers(field) })
}

// leaveTo gives the form with what lives at the paths. meta is of the live object, too.
func leaveTo(form *unstructured.Unstructured, live *unstructured.Unstructured, paths []path) {
	for _, p := range paths {
		if name, ok := strings.CutPrefix(p[len(p)-1], managedRoute); ok {
			keepItem(form, live, p[:len(p)-1], name)
			continue
		}
		if p.inList() {
			takeFrom(form.Object, live.Object, p, paths, nil)
			continue
		}
		leaveField(form, live, p)
	}
}

// keepItem puts a live item that Git does not have in front of a list.
func keepItem(form, live *unstructured.Unstructured, at path, name string) {
	f, _, _ := unstructured.NestedSlice(form.Object, at...)
	l, _, _ := unstructured.NestedSlice(live.Object, at...)
	named := func(item any) bool { return picks("name="+name, 0, item) }
	if i := slices.IndexFunc(l, named); i >= 0 && f != nil && !slices.ContainsFunc(f, named) {
		_ = unstructured.SetNestedSlice(form.Object, append([]any{l[i]}, f...), at...)
	}
}

// leaveField leaves a field out that lies in no list, or says what lives where nobody else owns it.
func leaveField(form, live *unstructured.Unstructured, p path) {
	value, found, err := unstructured.NestedFieldCopy(live.Object, p...)
	var parts []any
	for _, token := range p {
		parts = append(parts, token)
	}
	if err == nil && found && ownedByUs(live, parts...) && !ownedByAnother(live.GetManagedFields(), parts...) {
		_ = unstructured.SetNestedField(form.Object, value, p...)
		return
	}
	unstructured.RemoveNestedField(form.Object, p...)
}

// ownedByAnother is true when anybody but our applies owns the field, people with kubectl included.
func ownedByAnother(entries []metav1.ManagedFieldsEntry, parts ...any) bool {
	at, err := fieldpath.MakePath(parts...)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return !isOurApply(e) && fieldsOf(e).Has(at)
	})
}

func isOurApply(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// takeFrom puts what lives at a path into the form, which is at the place that before says.
func takeFrom(form, live any, p path, all []path, before path) {
	token, last := p[0], len(p) == 1
	switch f := form.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok || isItem(token) {
			return
		}
		if !last {
			takeFrom(f[token], l[token], p[1:], all, append(slices.Clone(before), token))
			return
		}
		if value, ok := l[token]; ok {
			f[token] = runtime.DeepCopyJSONValue(value)
		} else {
			delete(f, token)
		}
	case []any:
		l, ok := live.([]any)
		if !ok || !isItem(token) {
			return
		}
		for i, j := range pairs(f, l, rests(all, before)) {
			if j < 0 || !picks(token, i, f[i]) {
				continue
			}
			if last {
				f[i] = runtime.DeepCopyJSONValue(l[j])
			} else {
				takeFrom(f[i], l[j], p[1:], all, append(slices.Clone(before), "*"))
			}
		}
	}
}

func picks(token string, i int, item any) bool {
	if name, named := strings.CutPrefix(token, "name="); named {
		m, _ := item.(map[string]any)
		return m["name"] == name
	}
	return token == "*" || token == strconv.Itoa(i)
}

// rests are the ends of all paths that lead through a list at a place, seen from its items.
func rests(all []path, at path) []path {
	var found []path
	for _, p := range all {
		if len(p) <= len(at)+1 {
			continue
		}
		same := true
		for i, token := range at {
			same = same && (p[i] == token || token == "*" && isItem(p[i]))
		}
		if same && isItem(p[len(at)]) {
			found = append(found, p[len(at)+1:])
		}
	}
	return found
}

// pairs finds for each item of a wanted list the live one that it stands for; -1 for none.
func pairs(form, live []any, ignored []path) []int {
	found := make([]int, len(form))
	used := make(map[int]bool)
	match := func(same func(i, j int) bool) {
		for i := range form {
			if found[i] >= 0 {
				continue
			}
			for j := range live {
				if !used[j] && same(i, j) {
					found[i], used[j] = j, true
					break
				}
			}
		}
	}
	for i := range found {
		found[i] = -1
	}
	formNames, liveNames := names(form), names(live)
	if formNames != nil && liveNames != nil {
		match(func(i, j int) bool { return formNames[i] == liveNames[j] })
		return found
	}
	a, b := without(form, ignored), without(live, ignored)
	match(func(i, j int) bool { return reflect.DeepEqual(a[i], b[j]) })
	if len(form) == len(live) {
		match(func(i, j int) bool { return i == j })
	}
	return found
}

// without gives items without what is ignored of them.
func without(items []any, ignored []path) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = runtime.DeepCopyJSONValue(item)
		for _, p := range ignored {
			remove(all[i], p)
		}
	}
	return all
}

func remove(at any, p path) {
	if len(p) == 0 {
		return
	}
	switch v := at.(type) {
	case map[string]any:
		if len(p) == 1 {
			delete(v, p[0])
		} else {
			remove(v[p[0]], p[1:])
		}
	case []any:
		for i, item := range v {
			if len(p) > 1 && picks(p[0], i, item) {
				remove(item, p[1:])
			}
		}
	}
}

// leaving gives the form of a step over what lives at this moment, bound to it.
func (r *runner) leaving(ctx context.Context, s *StepResult) (*unstructured.Unstructured, error) {
	live, err := r.get(ctx, s.resource, s.ID.Namespace, s.ID.Name)
	if err != nil {
		return nil, err
	}
	if s.uid != "" && live.GetUID() != s.uid || !mayWrite(live, r.unit.ID, s.Step) {
		return nil, errMoved
	}
	form := s.want.get().DeepCopy()
	leaveTo(form, live, s.leave)
	form.SetUID(live.GetUID())
	form.SetResourceVersion(live.GetResourceVersion())
	return form, nil
}
