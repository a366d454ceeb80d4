package random

import (
	"fmt"
	"slices"
)

// retireService takes a service away with all that is its own; what led to it leads to another.
func (m *Mesh) retireService() string {
	s := pick(m, m.services)
	other := m.another(s)
	if other == nil || len(m.services) < 6 {
		return ""
	}
	m.routes = slices.DeleteFunc(m.routes, func(v *virtualService) bool { return v.of == s })
	m.policies = slices.DeleteFunc(m.policies, func(p *policy) bool { return p.service == s })
	m.services = slices.DeleteFunc(m.services, func(one *service) bool { return one == s })
	moved := 0
	for _, v := range m.routes {
		for _, r := range v.rules {
			if slices.ContainsFunc(r.to, func(t *target) bool { return t.service == s }) {
				r.to, moved = m.split(other), moved+1
			}
			if r.mirror != nil && r.mirror.service == s {
				r.mirror, moved = m.targetOf(other), moved+1
			}
		}
	}
	return fmt.Sprintf("%s is retired; %d rules lead to %s instead", s.name, moved, other.name)
}

// addService makes a new one, to which a route may lead at once.
func (m *Mesh) addService() string {
	if len(m.services) > 10 {
		return ""
	}
	s := m.newService()
	said := "service " + s.host() + " is new"
	if m.coin(50) {
		v := m.newRoute(s)
		said += ", with route " + v.name
	}
	if from := m.another(s); m.coin(60) && from != nil {
		if r := pick(m, m.leading(from)); r != nil {
			r.to = m.split(s)
			said += fmt.Sprintf(", and takes over from %s", from.name)
		}
	}
	return said
}

// changePort gives a port of a service another number. The routes follow.
func (m *Mesh) changePort() string {
	s := pick(m, m.services)
	p := pick(m, s.ports)
	before := p.number
	p.number = m.freePort(s)
	return fmt.Sprintf("%s listens on %d, not on %d", s.name, p.number, before)
}

// freePort is a number that no port of the service has.
func (m *Mesh) freePort(s *service) int {
	if s.tcp {
		m.numbers++
		return 20000 + m.numbers
	}
	for {
		number := pick(m, httpPorts())
		if !slices.ContainsFunc(s.ports, func(p *port) bool { return p.number == number }) {
			return number
		}
	}
}

// addPort gives a service a second port, and leads some routes to it.
func (m *Mesh) addPort() string {
	s := pick(m, m.services)
	if len(s.ports) > 1 || s.tcp {
		return ""
	}
	p := &port{m.freePort(s)}
	s.ports = append(s.ports, p)
	moved := 0
	for _, r := range m.leading(s) {
		if m.coin(50) {
			for _, t := range r.to {
				t.port = p
			}
			moved++
		}
	}
	return fmt.Sprintf("%s listens on %d too, where %d rules lead", s.name, p.number, moved)
}

// dropPort takes a port away; the routes lead to the other one.
func (m *Mesh) dropPort() string {
	var all []*service
	for _, s := range m.services {
		if len(s.ports) > 1 {
			all = append(all, s)
		}
	}
	s := pick(m, all)
	if s == nil {
		return ""
	}
	gone := s.ports[0]
	s.ports = s.ports[1:]
	for _, t := range m.targets(func(t *target) bool { return t.port == gone }) {
		t.port = s.ports[0]
	}
	m.tidy()
	return fmt.Sprintf("%s does not listen on %d any more", s.name, gone.number)
}

func (m *Mesh) entries() []*service {
	var out []*service
	for _, s := range m.services {
		if s.entry != "" {
			out = append(out, s)
		}
	}
	return out
}

// addAlias gives a ServiceEntry a second host, and leads a route to it.
func (m *Mesh) addAlias() string {
	s := pick(m, m.entries())
	if s == nil || s.alias != "" {
		return ""
	}
	s.alias = m.fresh(s.name+"-too") + ".ext.example"
	said := fmt.Sprintf("%s has a second host %s", s.name, s.alias)
	if r := pick(m, m.leading(s)); r != nil {
		r.to = []*target{{service: s, alias: true, port: r.to[0].port}}
		said += ", which a rule leads to"
	}
	return said
}

// dropAlias takes the second host away; the routes lead to the first.
func (m *Mesh) dropAlias() string {
	var all []*service
	for _, s := range m.entries() {
		if s.alias != "" {
			all = append(all, s)
		}
	}
	s := pick(m, all)
	if s == nil {
		return ""
	}
	said := fmt.Sprintf("%s is called %s no more", s.name, s.alias)
	s.alias = ""
	for _, t := range m.toService(s) {
		t.alias = false
	}
	m.tidy()
	return said
}

func (m *Mesh) renameEntry() string {
	s := pick(m, m.entries())
	if s == nil {
		return ""
	}
	before := s.entry
	s.entry = m.fresh(s.name + "-entry")
	return fmt.Sprintf("ServiceEntry %s is called %s", before, s.entry)
}

func (m *Mesh) renameRule() string {
	s := pick(m, m.ruled(0))
	if s == nil {
		return ""
	}
	before := s.rule
	s.rule = m.fresh(s.name + "-rule")
	return fmt.Sprintf("DestinationRule %s is called %s", before, s.rule)
}

// deleteRule takes the DestinationRule of a service away; its routes name no subset any more.
func (m *Mesh) deleteRule() string {
	s := pick(m, m.ruled(0))
	if s == nil {
		return ""
	}
	said := fmt.Sprintf("DestinationRule %s is gone", s.rule)
	s.rule, s.subsets = "", nil
	for _, t := range m.toService(s) {
		t.subset = nil
	}
	m.tidy()
	return said
}

// addRule gives a service a DestinationRule; a route names one of its subsets at once.
func (m *Mesh) addRule() string {
	var all []*service
	for _, s := range m.services {
		if s.rule == "" {
			all = append(all, s)
		}
	}
	s := pick(m, all)
	if s == nil {
		return ""
	}
	m.newRule(s)
	for _, r := range m.leading(s) {
		if m.coin(50) {
			r.to = m.split(s)
		}
	}
	return fmt.Sprintf("%s has a DestinationRule %s", s.name, s.rule)
}

func (m *Mesh) tuneRule() string {
	s := pick(m, m.ruled(0))
	if s == nil {
		return ""
	}
	s.limit += 10
	return fmt.Sprintf("%s takes %d connections", s.name, s.limit)
}

// moveService takes a service with all that is its own to another namespace. A Kubernetes Service has another host there, which the routes follow; a
// ServiceEntry keeps its own.
func (m *Mesh) moveService() string {
	s := pick(m, m.services)
	from, to := s.space, pick(m, m.spaces)
	if from == to {
		return ""
	}
	s.space = to
	for _, v := range m.routes {
		if v.of == s {
			v.space = to
		}
	}
	return fmt.Sprintf("%s moves from namespace %s to %s", s.name, from.name, to.name)
}

// addSpace makes a namespace, and a service in it that takes over a rule of another.
func (m *Mesh) addSpace() string {
	if len(m.spaces) > 4 {
		return ""
	}
	home := m.newSpace()
	s := m.newService()
	s.space = home
	said := fmt.Sprintf("namespace %s is new, with service %s", home.name, s.name)
	if from := m.another(s); from != nil {
		if r := pick(m, m.leading(from)); r != nil {
			r.to = m.split(s)
			said += ", which takes over from " + from.name
		}
	}
	return said
}
