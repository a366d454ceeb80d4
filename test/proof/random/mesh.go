package random

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Options of a mesh.
type Options struct {
	// Prefix begins the name of every namespace; "mesh" when empty.
	Prefix string
	// Labels are put on every namespace, for an istiod that looks at some only.
	Labels map[string]string
}

// Mesh is a mesh in Git.
type Mesh struct {
	prefix  string
	labels  map[string]string
	chance  *rand.Rand
	numbers int // of names that were given out

	spaces   []*space
	services []*service
	gateways []*gateway
	routes   []*virtualService
	policies []*policy
}

// space is a namespace.
type space struct {
	name string
	// sees are the other namespaces that its Sidecar lets in; without a Sidecar all are.
	sidecar bool
	sees    []*space
	mtls    string // of its PeerAuthentication; empty for none
}

// service is a host with what stands behind it.
type service struct {
	space *space
	name  string
	entry string // the name of its ServiceEntry; empty for a Kubernetes Service
	tcp   bool
	ports []*port
	// alias is a second host of a ServiceEntry, or empty.
	alias    string
	versions []string
	rule     string // the name of its DestinationRule; empty for none
	subsets  []*subset
	limit    int // of connections, in the DestinationRule
}

type port struct{ number int }

type subset struct {
	name, version string
}

// gateway is a Gateway with a domain of its own.
type gateway struct {
	space        *space
	name, domain string
}

// virtualService is a VirtualService: of a service (of), of a gateway (in), or a delegate (neither).
type virtualService struct {
	space *space
	name  string
	of    *service
	in    *gateway
	hosts []string // at the gateway
	rules []*rule
}

// rule is a route of a VirtualService.
type rule struct {
	path     string // empty matches all
	to       []*target
	mirror   *target
	delegate *virtualService // then there is no target
}

// target is where a rule leads to.
type target struct {
	service *service
	alias   bool // its second host
	subset  *subset
	port    *port
	weight  int
}

// policy is an AuthorizationPolicy that lets a namespace call a service.
type policy struct {
	service *service
	name    string
	from    *space
}

// New makes up a mesh.
func New(seed uint64, options ...Options) *Mesh {
	m := &Mesh{prefix: "mesh", chance: rand.New(rand.NewPCG(seed, 2026))}
	for _, o := range options {
		if o.Prefix != "" {
			m.prefix = o.Prefix
		}
		m.labels = o.Labels
	}
	for range 3 {
		m.newSpace()
	}
	for range 6 {
		m.newService()
	}
	for range 2 {
		m.newGateway()
	}
	for range 3 {
		m.newFront(pick(m, m.gateways))
	}
	for _, s := range m.services {
		if m.coin(60) {
			m.newRoute(s)
		}
	}
	for _, s := range m.services {
		if m.coin(30) {
			m.newPolicy(s)
		}
	}
	return m
}

// coin falls right in so many of a hundred cases.
func (m *Mesh) coin(percent int) bool { return m.chance.IntN(100) < percent }

// pick takes one of several, or the zero value of none.
func pick[T any](m *Mesh, of []T) (one T) {
	if len(of) == 0 {
		return one
	}
	return of[m.chance.IntN(len(of))]
}

// fresh gives a name that nothing has or had.
func (m *Mesh) fresh(word string) string {
	m.numbers++
	return fmt.Sprintf("%s-%d", word, m.numbers)
}

func (m *Mesh) newSpace() *space {
	s := &space{name: fmt.Sprintf("%s-%d", m.prefix, len(m.spaces)+1)}
	if len(m.spaces) > 0 && m.coin(50) { // the first, where a test's client lives, begins without
		s.sidecar = true
	}
	if m.coin(50) {
		s.mtls = pick(m, modes())
	}
	m.spaces = append(m.spaces, s)
	return s
}

func modes() []string { return []string{"PERMISSIVE", "STRICT", "DISABLE"} }

func httpPorts() []int { return []int{80, 8080, 8081, 9080} }

// newService makes up a service with two versions, and a rule for it in most cases.
func (m *Mesh) newService() *service {
	s := &service{space: pick(m, m.spaces), name: m.fresh("app"), versions: []string{"v1", "v2"}, tcp: m.coin(20)}
	number := pick(m, httpPorts())
	if s.tcp {
		number = 20000 + m.numbers // of its own: a port that two have is a listener that neither has
	} else if m.coin(50) {
		s.entry = s.name
	}
	s.ports = []*port{{number}}
	m.services = append(m.services, s)
	if m.coin(80) {
		m.newRule(s)
	}
	return s
}

// newRule gives a service a DestinationRule with a subset for each version.
func (m *Mesh) newRule(s *service) {
	s.rule, s.limit, s.subsets = m.fresh(s.name+"-rule"), 100, nil
	for _, v := range s.versions {
		s.subsets = append(s.subsets, &subset{name: v, version: v})
	}
}

func (m *Mesh) newGateway() *gateway {
	name := m.fresh("gate")
	g := &gateway{space: pick(m, m.spaces), name: name, domain: name + ".example"}
	m.gateways = append(m.gateways, g)
	return g
}

// newRoute gives a service a VirtualService of the mesh.
func (m *Mesh) newRoute(s *service) *virtualService {
	v := &virtualService{space: s.space, name: m.fresh(s.name + "-route"), of: s}
	if s.tcp {
		v.rules = []*rule{{to: m.split(s)}}
	} else {
		v.rules = m.httpRules(s)
	}
	m.routes = append(m.routes, v)
	return v
}

// newFront makes a VirtualService of a gateway, with a delegate in some cases.
func (m *Mesh) newFront(g *gateway) *virtualService {
	to := m.someHTTP()
	v := &virtualService{space: pick(m, m.spaces), name: m.fresh("front"), in: g, hosts: []string{m.fresh("www") + "." + g.domain}}
	v.rules = m.httpRules(to)
	if m.coin(40) {
		path := m.freePath(v)
		v.rules = append([]*rule{{path: path, delegate: m.newDelegate(path)}}, v.rules...)
	}
	m.routes = append(m.routes, v)
	return v
}

// newDelegate makes a VirtualService that serves what lies below a path.
func (m *Mesh) newDelegate(path string) *virtualService {
	v := &virtualService{space: pick(m, m.spaces), name: m.fresh("part")}
	v.rules = []*rule{{path: path + "/deep", to: m.split(m.someHTTP())}, {path: path, to: m.split(m.someHTTP())}}
	m.routes = append(m.routes, v)
	return v
}

// httpRules are one or two for paths, and one for the rest that leads to s.
func (m *Mesh) httpRules(s *service) []*rule {
	v := &virtualService{}
	for range m.chance.IntN(2) {
		v.rules = append(v.rules, &rule{path: m.freePath(v), to: m.split(m.someHTTP())})
	}
	v.rules = append(v.rules, &rule{to: m.split(s)})
	if m.coin(25) {
		other := m.someHTTP()
		v.rules[0].mirror = m.targetOf(other)
	}
	return v.rules
}

// freePath is a path that no rule of v has, nor one below another's.
func (m *Mesh) freePath(v *virtualService) string {
	for {
		path := pick(m, []string{"/api", "/cart", "/pay", "/static", "/user", "/admin", "/feed", "/search"})
		if !slices.ContainsFunc(v.rules, func(r *rule) bool { return r.path == path }) {
			return path
		}
	}
}

// someHTTP gives a service that speaks HTTP; there is always one.
func (m *Mesh) someHTTP() *service {
	var all []*service
	for _, s := range m.services {
		if !s.tcp {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		s := m.newService()
		s.tcp = false
		s.ports = []*port{{pick(m, httpPorts())}}
		return s
	}
	return pick(m, all)
}

// targetOf names a service, or a subset of it.
func (m *Mesh) targetOf(s *service) *target {
	t := &target{service: s, port: pick(m, s.ports)}
	switch {
	case s.rule != "" && m.coin(80):
		t.subset = pick(m, s.subsets)
	case s.alias != "" && m.coin(50):
		t.alias = true
	}
	return t
}

// split leads to one target of a service, or to two of its subsets.
func (m *Mesh) split(s *service) []*target {
	first := m.targetOf(s)
	if first.subset == nil || len(s.subsets) < 2 || m.coin(50) {
		return []*target{first}
	}
	second := &target{service: s, port: first.port, subset: first.subset}
	for second.subset == first.subset {
		second.subset = pick(m, s.subsets)
	}
	first.weight = 10 * (1 + m.chance.IntN(9))
	second.weight = 100 - first.weight
	return []*target{first, second}
}

func (m *Mesh) newPolicy(s *service) *policy {
	p := &policy{service: s, name: m.fresh(s.name + "-callers"), from: pick(m, m.spaces)}
	m.policies = append(m.policies, p)
	return p
}
