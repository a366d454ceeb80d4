package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unknowns are collected by what they have in common, so that a set of a hundred routes into a part of the mesh that nobody looked at
// gives one line and not a hundred.
type unknowns map[unknownKey]map[string]bool

type unknownKey struct {
	code, what, why string
}

// add that what, of the given name, could not be checked. The name may be empty.
func (u unknowns) add(code, what, name, why string) {
	k := unknownKey{code, what, why}
	if u[k] == nil {
		u[k] = map[string]bool{}
	}
	if name != "" {
		u[k][name] = true
	}
}

func (u unknowns) list() []Unknown {
	var all []Unknown
	for k, names := range u {
		all = append(all, Unknown{Code: k.code, About: about(k.what, slices.Sorted(maps.Keys(names))), Why: k.why})
	}
	slices.SortFunc(all, func(a, b Unknown) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.About, b.About), cmp.Compare(a.Why, b.Why))
	})
	return all
}

// about names the first few.
func about(what string, names []string) string {
	const shown = 3
	switch n := len(names); {
	case n == 0:
		return what
	case n > shown+1: // "and 1 more" is longer than most names
		return fmt.Sprintf("%s %s and %d more", what, strings.Join(names[:shown], ", "), n-shown)
	default:
		return what + " " + strings.Join(names, ", ")
	}
}
