package random

import (
	"fmt"
	"slices"
	"strings"
)

// change makes one change and says what; nothing, and an empty text, where the mesh has nothing for it.
type change func(*Mesh) string

// changes are all that may happen; what is there twice happens twice as often.
func changes() []change {
	return []change{
		(*Mesh).startCanary, (*Mesh).startCanary, (*Mesh).moveWeights, (*Mesh).moveWeights,
		(*Mesh).addSubset, (*Mesh).removeSubset, (*Mesh).removeSubset, (*Mesh).renameSubset, (*Mesh).renameSubset,
		(*Mesh).moveHost, (*Mesh).moveHost, (*Mesh).retireService, (*Mesh).retireService, (*Mesh).addService, (*Mesh).addService,
		(*Mesh).renameRoute, (*Mesh).renameRule, (*Mesh).deleteRule, (*Mesh).addRule, (*Mesh).changePort, (*Mesh).changePort, (*Mesh).addPort, (*Mesh).dropPort,
		(*Mesh).addAlias, (*Mesh).dropAlias, (*Mesh).moveGatewayHost, (*Mesh).moveGatewayHost, (*Mesh).changeDelegate, (*Mesh).changeMirror,
		(*Mesh).addRoute, (*Mesh).dropRoute, (*Mesh).addFront, (*Mesh).dropFront, (*Mesh).moveFront, (*Mesh).renameEntry,
		(*Mesh).moveService, (*Mesh).addSpace, (*Mesh).changeSidecar, (*Mesh).changeMTLS, (*Mesh).addPolicy, (*Mesh).changePolicy, (*Mesh).dropPolicy, (*Mesh).tuneRule,
	}
}

// Change makes the next commit and says what is new.
func (m *Mesh) Change() string {
	n := 1
	if m.coin(50) {
		n = 2 + m.chance.IntN(2)
	}
	var said []string
	for len(said) < n {
		if text := pick(m, changes())(m); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// ruled are the services with a DestinationRule that has at least n subsets.
func (m *Mesh) ruled(n int) []*service {
	var out []*service
	for _, s := range m.services {
		if s.rule != "" && len(s.subsets) >= n {
			out = append(out, s)
		}
	}
	return out
}

// leading are the rules that lead to a service and nowhere else, and not by a delegate.
func (m *Mesh) leading(s *service) []*rule {
	var out []*rule
	for _, v := range m.routes {
		for _, r := range v.rules {
			if len(r.to) > 0 && !slices.ContainsFunc(r.to, func(t *target) bool { return t.service != s }) {
				out = append(out, r)
			}
		}
	}
	return out
}

// toSubset are the targets that name a subset.
func (m *Mesh) toSubset(b *subset) []*target {
	return m.targets(func(t *target) bool { return t.subset == b })
}

// toService are the targets that name a service, by whichever of its hosts.
func (m *Mesh) toService(s *service) []*target {
	return m.targets(func(t *target) bool { return t.service == s })
}

func (m *Mesh) targets(which func(*target) bool) []*target {
	var out []*target
	for _, v := range m.routes {
		for _, t := range v.targets() {
			if which(t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// newSubset adds a version to a service, and its subset.
func (m *Mesh) newSubset(s *service) *subset {
	v := m.fresh("v")
	s.versions = append(s.versions, v)
	b := &subset{name: v, version: v}
	s.subsets = append(s.subsets, b)
	return b
}

func (m *Mesh) addSubset() string {
	s := pick(m, m.ruled(1))
	if s == nil || len(s.subsets) > 4 {
		return ""
	}
	return fmt.Sprintf("%s has a version %s, which nobody is led to", s.name, m.newSubset(s).name)
}

// startCanary leads a part of a route to a subset that is new.
func (m *Mesh) startCanary() string {
	s := pick(m, m.ruled(1))
	if s == nil || len(s.subsets) > 4 {
		return ""
	}
	r := pick(m, m.leading(s))
	if r == nil {
		return ""
	}
	b := m.newSubset(s)
	share := 5 * (1 + m.chance.IntN(10))
	base := r.to[0]
	base.weight = 100 - share
	r.to = []*target{base, {service: s, subset: b, port: base.port, weight: share}}
	return fmt.Sprintf("canary of %s: %s gets %d", s.name, b.name, share)
}

func (m *Mesh) moveWeights() string {
	var split []*rule
	for _, v := range m.routes {
		for _, r := range v.rules {
			if len(r.to) == 2 {
				split = append(split, r)
			}
		}
	}
	r := pick(m, split)
	if r == nil {
		return ""
	}
	if m.coin(30) { // the canary is all, the other one nothing
		r.to = []*target{r.to[1]}
		r.to[0].weight = 0
		return fmt.Sprintf("canary of %s is over: %s gets all", r.to[0].service.name, r.to[0])
	}
	r.to[1].weight = 5 * (1 + m.chance.IntN(19))
	r.to[0].weight = 100 - r.to[1].weight
	return fmt.Sprintf("canary of %s: %s gets %d", r.to[1].service.name, r.to[1], r.to[1].weight)
}

// String reads "v2 of app-3:8080".
func (t *target) String() string {
	text := fmt.Sprintf("%s:%d", t.service.host(), t.port.number)
	if t.alias {
		text = fmt.Sprintf("%s:%d", t.service.alias, t.port.number)
	}
	if t.subset != nil {
		text = t.subset.name + " of " + text
	}
	return text
}

// removeSubset takes a subset with its version away; the routes to it are led to another one.
func (m *Mesh) removeSubset() string {
	s := pick(m, m.ruled(2))
	if s == nil {
		return ""
	}
	b := pick(m, s.subsets)
	s.subsets = slices.DeleteFunc(s.subsets, func(other *subset) bool { return other == b })
	if !slices.ContainsFunc(s.subsets, func(other *subset) bool { return other.version == b.version }) && len(s.versions) > 1 {
		s.versions = slices.DeleteFunc(s.versions, func(v string) bool { return v == b.version })
	}
	moved := 0
	for _, t := range m.toSubset(b) {
		t.subset, moved = pick(m, s.subsets), moved+1
	}
	m.tidy()
	return fmt.Sprintf("%s loses subset %s, which %d targets were led to", s.name, b.name, moved)
}

// tidy makes one target of two that are the same.
func (m *Mesh) tidy() {
	for _, v := range m.routes {
		for _, r := range v.rules {
			if len(r.to) == 2 && *r.to[0].unweighted() == *r.to[1].unweighted() {
				r.to = r.to[:1]
			}
			if len(r.to) == 1 {
				r.to[0].weight = 0
			}
		}
	}
}

func (t *target) unweighted() *target {
	out := *t
	out.weight = 0
	return &out
}

func (m *Mesh) renameSubset() string {
	s := pick(m, m.ruled(1))
	if s == nil {
		return ""
	}
	b := pick(m, s.subsets)
	before := b.name
	b.name = m.fresh("stable")
	return fmt.Sprintf("subset %s of %s is called %s, for %d targets", before, s.name, b.name, len(m.toSubset(b)))
}

// moveHost leads a rule to another service.
func (m *Mesh) moveHost() string {
	v := pick(m, m.routes)
	r := pick(m, v.rules)
	if r.delegate != nil {
		return ""
	}
	other := m.another(r.to[0].service)
	if other == nil {
		return ""
	}
	before := r.to[0].service
	r.to = m.split(other)
	return fmt.Sprintf("a rule of %s leads to %s, and not to %s any more", v.name, other.name, before.name)
}

// another gives a service that speaks the same protocol.
func (m *Mesh) another(s *service) *service {
	var all []*service
	for _, other := range m.services {
		if other != s && other.tcp == s.tcp {
			all = append(all, other)
		}
	}
	return pick(m, all)
}
