package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render/app"
)

// brackets are an index, the name of a map's entry, or an empty pair.
var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// find follows a path below spec. Indices of lists and names in maps may be there or not.
func (f *appField) find(path string) (*appField, error) {
	typed := path
	path = brackets.ReplaceAllString(path, "")
	if kind, rest, ok := strings.Cut(path, "."); ok && (strings.EqualFold(kind, app.Kind) || strings.EqualFold(kind, "appconf")) {
		path = rest
	}
	path = strings.TrimPrefix(path, "spec.")
	at := f
	for word := range strings.SplitSeq(path, ".") {
		switch next := at.field(word); {
		case next != nil:
			at = next
		case word == "" || isNumber(word):
		case at.freeForm() || at.hasNames() && len(near(word, at.fields, 1)) == 0: // what is inside is not described, or it is the name of an entry
		default:
			return nil, unknownField(f, at, typed, word)
		}
	}
	if at == f {
		return nil, unknownField(f, f, typed, path)
	}
	return at, nil
}

// field inside of this one; nil when there is none.
func (f *appField) field(name string) *appField {
	for _, inner := range f.fields {
		if inner.name == name {
			return inner
		}
	}
	return nil
}

// freeForm is true for a field that takes what Istio takes.
func (f *appField) freeForm() bool { return len(f.fields) == 0 && f.value.Type == "object" }

// hasNames is true for a map, or a list of maps.
func (f *appField) hasNames() bool { return strings.Contains(f.typeName(), "map of ") }

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// unknownField is the error for a field that is not there. It names what comes near: fields beside it, or fields of that name elsewhere.
func unknownField(root, at *appField, typed, word string) error {
	inside := "an " + app.Kind
	if at != root {
		inside = at.path()
	}
	err := fmt.Errorf("there is no field %s: %s has no %s", typed, inside, word)
	slack := max(len(word)/3, 2)
	candidates := near(word, at.fields, slack)
	if len(candidates) == 0 {
		for _, f := range root.below() {
			if strings.EqualFold(f.name, word) {
				candidates = append(candidates, f.path())
			}
		}
	}
	if len(candidates) == 0 {
		candidates = near(word, root.below(), slack)
	}
	const most = 5
	switch {
	case len(candidates) > most:
		return withHint(err, "did you mean %s, or one of %d more?", strings.Join(candidates[:most], ", "), len(candidates)-most)
	case len(candidates) > 0:
		return withHint(err, "did you mean %s?", strings.Join(candidates, " or "))
	case len(at.fields) == 0:
		return withHint(err, "%s is %s and has no fields", inside, article(at.typeName()))
	}
	var names []string
	for _, f := range at.fields {
		names = append(names, f.name)
	}
	return withHint(err, "%s has %s", inside, strings.Join(names, ", "))
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeio") {
		return "an " + noun
	}
	return "a " + noun
}

// near gives the paths of the fields whose names are nearly the word, the nearest first. Up to slack letters may differ, but not half of them.
func near(word string, fields []*appField, slack int) []string {
	type candidate struct {
		path     string
		distance int
	}
	var found []candidate
	for _, f := range fields {
		if d := editDistance(strings.ToLower(word), strings.ToLower(f.name)); d <= slack && 2*d <= len(word) {
			found = append(found, candidate{f.path(), d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var paths []string
	for _, c := range found {
		paths = append(paths, c.path)
	}
	return paths
}

// editDistance is how many letters have to be put in, left out or changed (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// becomesTarget is a field of an Istio object.
type becomesTarget struct{ kind, path string }

var (
	// aTarget is a kind or a path in a sentence. Fields that stand in several places have paths from the nearest thing that they share.
	aTarget = regexp.MustCompile(`[A-Z][A-Za-z]+|\b[a-z][A-Za-z0-9]*(?:\[[^\]]*\])?(?:\.[a-z][A-Za-z0-9]*(?:\[[^\]]*\])?)+`)
	// istioKinds are what an AppConfiguration becomes.
	istioKinds = []string{
		"AuthorizationPolicy", "DestinationRule", "EnvoyFilter", "Gateway", "PeerAuthentication", "ProxyConfig", "RequestAuthentication",
		"ServiceEntry", "Sidecar", "Telemetry", "VirtualService", "WasmPlugin", "WorkloadEntry", "WorkloadGroup",
	}
)

// targets are the fields of Istio objects that the field's description names as what it becomes. A kind holds for the paths after it, and where
// none is named, that of the field around it does.
func (f *appField) targets() []becomesTarget {
	var found []becomesTarget
	around := f.targetAround()
	kind := around.kind
	for _, word := range aTarget.FindAllString(f.becomes(), -1) {
		last := len(found) - 1
		switch {
		case slices.Contains(istioKinds, word):
			kind = word
			found = append(found, becomesTarget{kind, "spec"})
		case word[0] < 'a' || kind == "" || strings.HasPrefix(word, "istio."): // a name, or the key of an annotation
		case last >= 0 && found[last] == becomesTarget{kind, "spec"}: // the kind was named for this path
			found[last].path = pathFrom(around.path, word)
		default:
			found = append(found, becomesTarget{kind, pathFrom(around.path, word)})
		}
	}
	return found
}

// targetAround is what the nearest field around this one becomes.
func (f *appField) targetAround() becomesTarget {
	for up := f.parent; up != nil; up = up.parent {
		if targets := up.targets(); len(targets) > 0 {
			return targets[0]
		}
	}
	return becomesTarget{path: "spec"}
}

// pathFrom reads a path that begins with spec, or else with a field that the path around has too.
func pathFrom(around, path string) string {
	if strings.HasPrefix(path, "spec.") {
		return plainPath(path)
	}
	steps, rest := strings.Split(around, "."), strings.TrimPrefix(plainPath(path), "spec.")
	first, _, _ := strings.Cut(rest, ".")
	for i := len(steps) - 1; i > 0; i-- {
		if steps[i] == first {
			return strings.Join(append(slices.Clone(steps[:i]), rest), ".")
		}
	}
	return plainPath(path)
}

// kinds of the objects that the field becomes, each once.
func (f *appField) kinds() []string {
	var all []string
	for _, t := range f.targets() {
		if !slices.Contains(all, t.kind) {
			all = append(all, t.kind)
		}
	}
	return all
}

// plainPath is a path in an Istio object without indices, and with spec in front.
func plainPath(path string) string {
	path = strings.Trim(brackets.ReplaceAllString(path, ""), ".")
	if path == "" || path == "spec" || strings.HasPrefix(path, "spec.") {
		return cmp.Or(path, "spec")
	}
	return "spec." + path
}

// becoming gives the fields that become a field of an Istio object or something inside of it. When there is none, it gives those that become the nearest
// field around it.
func (f *appField) becoming(kind, path string) ([]*appField, error) {
	i := slices.IndexFunc(istioKinds, func(k string) bool {
		return strings.EqualFold(k, kind) || strings.EqualFold(k+"s", kind) || strings.EqualFold(strings.TrimSuffix(k, "y")+"ies", kind)
	})
	if i < 0 {
		return nil, withHint(fmt.Errorf("an %s does not become a %s", app.Kind, kind), "it becomes %s", strings.Join(istioKinds, ", "))
	}
	asked := plainPath(path)
	found := f.withTarget(func(t becomesTarget) bool {
		return t.kind == istioKinds[i] && (t.path == asked || strings.HasPrefix(t.path, asked+"."))
	})
	for len(found) == 0 && asked != "" {
		asked, _ = cutLast(asked, ".")
		found = f.withTarget(func(t becomesTarget) bool { return t.kind == istioKinds[i] && t.path == asked })
	}
	return found, nil
}

// withTarget gives the fields inside that become what is asked for.
func (f *appField) withTarget(wanted func(becomesTarget) bool) []*appField {
	var found []*appField
	for _, inner := range f.below() {
		if slices.ContainsFunc(inner.targets(), wanted) {
			found = append(found, inner)
		}
	}
	return found
}
