package check

import (
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/legacy"
)

// Fix is what takes the place of an object that nobody reads any more.
type Fix struct {
	// YAML is ready to paste.
	YAML string
	// Exact says that the proxies are told the same; Why says what is different or not known.
	Exact bool
	Why   string
}

// legacyRules find what earlier versions of Istio read and this one does not.
func legacyRules() []rule {
	return []rule{retiredField, oldName}
}

// retiredField finds fields that Istio's definitions still have and that nobody reads: strict decoding lets them pass.
var retiredField = rule{
	Rule: Rule{
		Code: "MOOR016", Level: Error,
		Title: "nobody reads this field any more",
		Mend:  "write what does the same today; mooring check --fix does where it is exact",
	},
	check: func(s *subject) []problem {
		return s.legacy(func(c legacy.Change) bool {
			// What is no field any more is an unknown one, and a part of the request below headers is MOOR020.
			return c.Broken && !c.Unknown && !strings.Contains(c.Path, ".headers.")
		})
	},
}

// oldName finds fields, values and versions that have another name today and still work.
var oldName = rule{
	Rule: Rule{
		Code: "MOOR017", Level: Info,
		Title: "has another name today",
		Mend:  "write it as it is called today; mooring check --fix does",
	},
	check: func(s *subject) []problem {
		return s.legacy(func(c legacy.Change) bool {
			return !c.Broken && !c.Unknown && !strings.HasSuffix(c.Path, ".fault.delay.percent") // IST0002 says so
		})
	},
}

// legacy lists the retired fields of an object of Istio's.
func (s *subject) legacy(wanted func(legacy.Change) bool) []problem {
	var found []problem
	for _, c := range s.retired() {
		if wanted(c) {
			found = append(found, problem{Field: c.Path, Message: c.Message, Mend: c.Mend})
		}
	}
	return found
}

func (s *subject) retired() []legacy.Change {
	if s.schema == nil {
		return nil
	}
	return s.old()
}

// todaysNames says of fields that are no longer there what they are called today.
func (s *subject) todaysNames(unknown []problem) []problem {
	if len(unknown) == 0 {
		return nil
	}
	named := slices.Clone(unknown)
	for _, c := range s.retired() {
		for i, p := range named {
			if c.Unknown && p.Field == c.Path {
				named[i].Message, named[i].Mend = "unknown field: it "+c.Message, c.Mend
			}
		}
	}
	return named
}

// translate gives the findings about kinds that are gone what takes their place, with the names of the set's Services and roles.
func translate(found []Finding, set *render.Set) {
	objects := map[render.ID]map[string]any{}
	for _, f := range found {
		if f.Code == retiredKind.Code {
			for _, o := range set.Objects {
				objects[idOf(o)] = contentOf(o)
			}
			break
		}
	}
	neighbours := func(apiVersion, kind, namespace, name string) map[string]any {
		group, _, inGroup := strings.Cut(apiVersion, "/")
		if !inGroup {
			group = ""
		}
		return objects[render.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}]
	}
	for i, f := range found {
		if f.Code != retiredKind.Code {
			continue
		}
		if t := legacy.Kind(objects[f.Object], neighbours); t != nil {
			found[i].Fix = &Fix{YAML: t.YAML, Exact: t.Exact, Why: t.Why}
		}
	}
}

func contentOf(o render.Object) map[string]any {
	if o.Content == nil {
		return nil
	}
	return o.Unstructured().Object
}
