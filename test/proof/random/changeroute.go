package random

import (
	"fmt"
	"slices"
)

// renameRoute gives a VirtualService another name; who delegates to it follows.
func (m *Mesh) renameRoute() string {
	v := pick(m, m.routes)
	before := v.name
	v.name = m.fresh("renamed")
	return fmt.Sprintf("VirtualService %s is called %s", before, v.name)
}

// addRoute gives a service that has none a VirtualService.
func (m *Mesh) addRoute() string {
	var all []*service
	for _, s := range m.services {
		if !slices.ContainsFunc(m.routes, func(v *virtualService) bool { return v.of == s }) {
			all = append(all, s)
		}
	}
	s := pick(m, all)
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s has a route %s", s.name, m.newRoute(s).name)
}

func (m *Mesh) dropRoute() string {
	var all []*virtualService
	for _, v := range m.routes {
		if v.of != nil {
			all = append(all, v)
		}
	}
	v := pick(m, all)
	if v == nil {
		return ""
	}
	m.drop(v)
	return fmt.Sprintf("route %s of %s is gone", v.name, v.of.name)
}

// drop takes a VirtualService away, and the delegates that were its own.
func (m *Mesh) drop(v *virtualService) {
	m.routes = slices.DeleteFunc(m.routes, func(other *virtualService) bool {
		return other == v || slices.ContainsFunc(v.rules, func(r *rule) bool { return r.delegate == other })
	})
}

func (m *Mesh) fronts() []*virtualService {
	var out []*virtualService
	for _, v := range m.routes {
		if v.in != nil {
			out = append(out, v)
		}
	}
	return out
}

func (m *Mesh) addFront() string {
	if len(m.fronts()) > 5 {
		return ""
	}
	v := m.newFront(pick(m, m.gateways))
	return fmt.Sprintf("%s serves %v", v.name, v.hosts)
}

func (m *Mesh) dropFront() string {
	all := m.fronts()
	if len(all) < 3 {
		return ""
	}
	v := pick(m, all)
	m.drop(v)
	return fmt.Sprintf("%s, which served %v, is gone", v.name, v.hosts)
}

// moveGatewayHost moves a host from one VirtualService of a gateway to another, or to a new one. One that has none left goes.
func (m *Mesh) moveGatewayHost() string {
	from := pick(m, m.fronts())
	var others []*virtualService
	for _, v := range m.fronts() {
		if v != from && v.in == from.in {
			others = append(others, v)
		}
	}
	to := pick(m, others)
	if to == nil || m.coin(20) {
		to = m.newFront(from.in)
		to.hosts = nil
	}
	host := pick(m, from.hosts)
	from.hosts = slices.DeleteFunc(from.hosts, func(h string) bool { return h == host })
	to.hosts = append(to.hosts, host)
	said := fmt.Sprintf("%s is served by %s, not by %s", host, to.name, from.name)
	if len(from.hosts) == 0 {
		m.drop(from)
		said += ", which is gone"
	}
	return said
}

// moveFront moves a VirtualService to another gateway, under other hosts.
func (m *Mesh) moveFront() string {
	v := pick(m, m.fronts())
	g := pick(m, m.gateways)
	if g == v.in {
		return ""
	}
	v.in, v.hosts = g, []string{m.fresh("www") + "." + g.domain}
	return fmt.Sprintf("%s is at gateway %s, for %v", v.name, g.name, v.hosts)
}

// changeDelegate gives a path of a gateway's VirtualService to another delegate that is new, or to the first one.
func (m *Mesh) changeDelegate() string {
	v := pick(m, m.fronts())
	for _, r := range v.rules {
		if r.delegate == nil {
			continue
		}
		old := r.delegate
		r.delegate = m.newDelegate(r.path)
		m.drop(old)
		return fmt.Sprintf("%s of %s is delegated to %s, and not to %s", r.path, v.name, r.delegate.name, old.name)
	}
	path := m.freePath(v)
	d := m.newDelegate(path)
	v.rules = append([]*rule{{path: path, delegate: d}}, v.rules...)
	return fmt.Sprintf("%s of %s is delegated to %s", path, v.name, d.name)
}

// changeMirror begins, moves or ends a mirror.
func (m *Mesh) changeMirror() string {
	v := pick(m, m.routes)
	r := pick(m, v.rules)
	if r.delegate != nil || v.of != nil && v.of.tcp {
		return ""
	}
	if r.mirror != nil && m.coin(50) {
		r.mirror = nil
		return fmt.Sprintf("a rule of %s is mirrored no more", v.name)
	}
	r.mirror = m.targetOf(m.someHTTP())
	return fmt.Sprintf("a rule of %s is mirrored to %s", v.name, r.mirror)
}

// changeSidecar adds a namespace's Sidecar, removes it, or changes what it lets in; never so that what a route needs is hidden.
func (m *Mesh) changeSidecar() string {
	s := pick(m, m.spaces)
	if s.sidecar && m.coin(30) {
		s.sidecar, s.sees = false, nil
		return fmt.Sprintf("namespace %s has no Sidecar", s.name)
	}
	s.sidecar = true
	other := pick(m, m.spaces)
	switch {
	case other == s:
		s.sees = nil
	case slices.Contains(s.sees, other):
		s.sees = slices.DeleteFunc(s.sees, func(o *space) bool { return o == other })
	default:
		s.sees = append(s.sees, other)
	}
	var sees []string
	for _, o := range m.needs(s) {
		sees = append(sees, o.name)
	}
	return fmt.Sprintf("the Sidecar of namespace %s lets in %v", s.name, sees)
}

func (m *Mesh) changeMTLS() string {
	s := pick(m, m.spaces)
	if s.mtls != "" && m.coin(20) {
		s.mtls = ""
		return fmt.Sprintf("namespace %s has no PeerAuthentication", s.name)
	}
	before := s.mtls
	for s.mtls == before {
		s.mtls = pick(m, modes())
	}
	return fmt.Sprintf("mutual TLS of namespace %s is %s", s.name, s.mtls)
}

func (m *Mesh) addPolicy() string {
	if len(m.policies) > 6 {
		return ""
	}
	p := m.newPolicy(pick(m, m.services))
	return fmt.Sprintf("%s lets %s call %s", p.name, p.from.name, p.service.name)
}

func (m *Mesh) changePolicy() string {
	p := pick(m, m.policies)
	if p == nil {
		return ""
	}
	p.from = pick(m, m.spaces)
	return fmt.Sprintf("%s lets %s call %s", p.name, p.from.name, p.service.name)
}

func (m *Mesh) dropPolicy() string {
	p := pick(m, m.policies)
	if p == nil {
		return ""
	}
	m.policies = slices.DeleteFunc(m.policies, func(o *policy) bool { return o == p })
	return fmt.Sprintf("%s is gone", p.name)
}
