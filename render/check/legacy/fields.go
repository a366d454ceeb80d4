package legacy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fields finds the retired fields of an object, or of a patch to one: content is what its YAML decodes to.
func Fields(content map[string]any) []Change {
	group, _, _ := strings.Cut(fmt.Sprint(content["apiVersion"]), "/")
	f := &finder{tree: content}
	f.apiVersion(group)
	switch fmt.Sprint(group, " ", content["kind"]) {
	case "networking.istio.io VirtualService":
		f.virtualService()
	case "networking.istio.io DestinationRule":
		f.destinationRule()
	case "security.istio.io RequestAuthentication":
		f.requestAuthentication()
	}
	return f.found
}

// apiVersion finds the alpha version of kinds that are served as v1 today, with the same schema.
func (f *finder) apiVersion(group string) {
	kinds := map[string][]string{
		"networking.istio.io": {"VirtualService", "DestinationRule", "Gateway", "ServiceEntry", "Sidecar", "WorkloadEntry", "WorkloadGroup"},
		"telemetry.istio.io":  {"Telemetry"},
	}
	kind, _ := f.tree["kind"].(string)
	version, _ := f.tree["apiVersion"].(string)
	if !slices.Contains(kinds[group], kind) || !strings.Contains(version, "/v1alpha") {
		return
	}
	f.found = append(f.found, Change{
		Path: "apiVersion", Message: version + " is an old version and still served", Mend: "write " + group + "/v1", Exact: true,
		edits: []edit{{to: []any{"apiVersion"}, value: group + "/v1"}},
	})
}

// finder collects changes of one object.
type finder struct {
	tree  map[string]any
	found []Change
}

func (f *finder) at(path []any) any { return find(f.tree, path...) }

// each calls visit with the path of every item of a list.
func (f *finder) each(list []any, visit func(item []any)) {
	items, _ := f.at(list).([]any)
	for i := range items {
		visit(below(list, i))
	}
}

// spelling of a field that the object has: protobuf's JSON also takes the snake_case name.
func (f *finder) spelling(parent []any, name string) (path []any, ok bool) {
	for _, key := range []string{name, snake(name)} {
		if has(f.at(parent), key) {
			return below(parent, key), true
		}
	}
	return nil, false
}

func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// moved finds a field that is called otherwise today, or stands elsewhere. The value may change its form with the name.
func (f *finder) moved(parent []any, name string, target []any, c Change, convert func(any) any) {
	from, ok := f.spelling(parent, name)
	if !ok {
		return
	}
	c.Path, c.Exact = pathText(from), true
	c.Mend = cmp.Or(c.Mend, "write "+pathText(target)+" instead")
	e := edit{from: from, to: target}
	if convert != nil {
		e.value = convert(f.at(from))
		if e.value == nil {
			c.Exact, c.Why = false, "its value has not the form that it had"
		}
	}
	if c.Exact && f.at(target) != nil {
		c.Exact, c.Why = false, pathText(target)+" is there too, and one of the two must be chosen"
	}
	c.edits = []edit{e}
	f.found = append(f.found, c)
}

// gone finds a field that says what is always so today.
func (f *finder) gone(parent []any, name string, c Change) {
	if from, ok := f.spelling(parent, name); ok {
		c.Path, c.Exact, c.edits = pathText(from), true, []edit{{from: from}}
		f.found = append(f.found, c)
	}
}

// percent is a whole number of percent as today's mapping.
func percent(v any) any {
	switch n := v.(type) {
	case int, int64, uint64, float64:
		return map[string]any{"value": n}
	}
	return nil
}

// exactly turns texts into matches of exactly these.
func exactly(v any) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	matches := make([]any, len(list))
	for i, text := range list {
		if _, ok := text.(string); !ok {
			return nil
		}
		matches[i] = map[string]any{"exact": text}
	}
	return matches
}

// named turns texts into mappings with a name.
func named(v any) any {
	list, ok := v.([]any)
	if !ok {
		return nil
	}
	items := make([]any, len(list))
	for i, text := range list {
		if _, ok := text.(string); !ok {
			return nil
		}
		items[i] = map[string]any{"name": text}
	}
	return items
}

// pathText writes a path as findings do: spec.http[0].mirror.
func pathText(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", s)
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// trafficPolicies are the paths of all traffic policies of a DestinationRule.
func (f *finder) trafficPolicies() [][]any {
	all := [][]any{{"spec", "trafficPolicy"}}
	f.each([]any{"spec", "subsets"}, func(subset []any) { all = append(all, below(subset, "trafficPolicy")) })
	for _, policy := range slices.Clone(all) {
		f.each(below(policy, "portLevelSettings"), func(port []any) { all = append(all, port) })
	}
	return all
}
