package check

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// envoyRegex finds expressions in EnvoyFilters that Envoy cannot read. Those of all other kinds Istio reads itself, and refuses (IST0106).
var envoyRegex = rule{
	Rule: Rule{
		Code: "MOOR028", Level: Error,
		Title: "Envoy cannot read the expression",
		Mend:  "Envoy reads RE2, which has no lookaround and no backreferences, https://github.com/google/re2/wiki/Syntax",
	},
	check: func(s *subject) []problem {
		if s.id.Group != networkingGroup || s.id.Kind != "EnvoyFilter" {
			return nil
		}
		spec, _ := s.root()["spec"].(map[string]any)
		patches, _ := spec["configPatches"].([]any)
		var found []problem
		for i, p := range patches {
			patch, _ := p.(map[string]any)
			found = append(found, unreadable(join(index("spec.configPatches", i), "patch"), "", patch["patch"])...)
		}
		return found
	},
}

// unreadable walks through what a patch brings. An expression is a field called regex of something that is called a regex itself, so that the settings of an
// extension, which may have expressions of another kind, are left alone.
func unreadable(field, parent string, value any) []problem {
	var found []problem
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := join(field, key)
			expr, ok := value[key].(string)
			if !ok {
				name := key
				if key == "pattern" { // of a regex_rewrite
					name = parent
				}
				found = append(found, unreadable(at, name, value[key])...)
				continue
			}
			if key != "regex" || !strings.Contains(strings.ToLower(parent), "regex") {
				continue
			}
			if _, err := regexp.Compile(expr); err != nil && !strings.Contains(expr, `\C`) { // which Go alone does not know
				found = append(found, problem{Field: at, Message: fmt.Sprintf("%s: %v: the proxies refuse the whole listener or route, and keep what they had", strconv.Quote(expr), err)})
			}
		}
	case []any:
		for i, item := range value {
			found = append(found, unreadable(index(field, i), parent, item)...)
		}
	}
	return found
}
