package policy

import (
	"fmt"
	"path"
)

// match says which objects a policy is about. Each list holds patterns; an empty one matches all.
type match struct {
	Groups     []string `json:"groups,omitempty"`
	Kinds      []string `json:"kinds,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
}

func (m match) valid() []error {
	var errs []error
	for field, patterns := range m.lists() {
		for i, p := range patterns {
			if _, err := path.Match(p, ""); err != nil {
				errs = append(errs, fmt.Errorf("%s[%d] is %q, which is no pattern", field, i, p))
			}
		}
	}
	return errs
}

func (m match) lists() map[string][]string {
	return map[string][]string{"groups": m.Groups, "kinds": m.Kinds, "namespaces": m.Namespaces, "names": m.Names}
}

func (m match) matches(group, kind, namespace, name string) bool {
	return matchesOne(m.Kinds, kind) && matchesOne(m.Groups, group) && matchesOne(m.Namespaces, namespace) && matchesOne(m.Names, name)
}

// matchesOne says whether one of the patterns matches; none at all match everything.
func matchesOne(patterns []string, value string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, value); err == nil && ok {
			return true
		}
	}
	return len(patterns) == 0
}
