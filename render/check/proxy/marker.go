package proxy

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config"

	"github.com/mooring-dev/mooring/render/check/world"
)

// Source is the entry of a VirtualService that made a route.
type Source struct {
	Object *world.Object
	// HTTP is the index in spec.http, and Match in its match; -1 where the entry has none.
	HTTP, Match int
}

// Field is the path of the entry in the object.
func (s Source) Field() string {
	return fmt.Sprintf("spec.http[%d]", s.HTTP)
}

// MatchField is the path of the match, or of the entry that has none.
func (s Source) MatchField() string {
	if s.Match < 0 {
		return s.Field()
	}
	return fmt.Sprintf("%s.match[%d]", s.Field(), s.Match)
}

// markers are the names that http entries and their matches have in the copies that the library gets.
type markers struct {
	sources map[string]Source
}

// mark copies a VirtualService and gives the names.
func (m *markers) mark(o *world.Object, c config.Config) config.Config {
	out := c.DeepCopy()
	spec, ok := out.Spec.(*networking.VirtualService)
	if !ok {
		return out
	}
	for i, h := range spec.Http {
		if h == nil {
			continue
		}
		h.Name = m.name(Source{Object: o, HTTP: i, Match: -1})
		for k, match := range h.Match {
			if match != nil {
				match.Name = m.name(Source{Object: o, HTTP: i, Match: k})
			}
		}
	}
	return out
}

// name without the two characters that the library joins names with.
func (m *markers) name(s Source) string {
	name := fmt.Sprintf("m%d", len(m.sources))
	m.sources[name] = s
	return name
}

// trace reads a route's name: root, or root-delegate, and then the match after a dot, which is joined likewise. It gives
// the entry that was written last, a delegate's where there is one, and the root that led to it.
func (m *markers) trace(name string) (from, root Source, ok bool) {
	entry, match, matched := strings.Cut(name, ".")
	entries := strings.Split(entry, "-")
	root, ok = m.sources[entries[0]]
	from = m.sources[entries[len(entries)-1]]
	if !ok || from.Object == nil {
		return from, root, false
	}
	if matched {
		for _, one := range strings.Split(match, "-") {
			s := m.sources[one]
			if s.Object == from.Object {
				from = s
			}
			if s.Object == root.Object {
				root = s
			}
		}
	}
	return from, root, true
}
