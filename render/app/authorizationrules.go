package app

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	securityv1beta1 "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config/security"
)

// conditionHint names what a condition may ask for, as Istio 1.31 knows it.
const conditionHint = "use request.headers[NAME], source.ip, remote.ip, source.namespace, source.serviceAccount, source.principal, request.auth.principal, " +
	"request.auth.audiences, request.auth.presenter, request.auth.claims[NAME], destination.ip, destination.port or connection.sni"

// rule writes a rule and tells what would match everything or nothing against its author's intent.
func (b *builder) rule(p *AuthorizationPolicy, r *AuthorizationRule, block []string) *securityv1beta1.Rule {
	out := &securityv1beta1.Rule{}
	lists := []struct {
		name  string
		empty bool
	}{{"from", r.From != nil && len(r.From) == 0}, {"to", r.To != nil && len(r.To) == 0}, {"when", r.When != nil && len(r.When) == 0}}
	clean := true
	for _, l := range lists {
		if l.empty {
			clean = false
			b.fail(below(block, l.name), "leave it out if everything is meant, or add an item", "is an empty list, which matches everything")
		}
	}
	if clean && len(r.From) == 0 && len(r.To) == 0 && len(r.When) == 0 {
		b.fail(block, "write "+everything(p.action())+" in place of rules if that is meant, or add from, to or when", "a rule without from, to and when matches every request")
	}
	for i := range r.From {
		out.From = append(out.From, &securityv1beta1.Rule_From{Source: b.source(p, &r.From[i], below(block, "from", index(i)))})
	}
	for i := range r.To {
		out.To = append(out.To, &securityv1beta1.Rule_To{Operation: b.operation(&r.To[i], below(block, "to", index(i)))})
	}
	for i, c := range r.When {
		b.condition(p, c, below(block, "when", index(i)))
		out.When = append(out.When, &securityv1beta1.Condition{Key: c.Key, Values: c.Values, NotValues: c.NotValues})
	}
	b.httpOnly(p, r, block)
	return out
}

// everything is the word for it with an action.
func everything(action string) string {
	switch action {
	case "DENY":
		return "denyAll: true"
	case "AUDIT", "CUSTOM":
		return "allRequests: true"
	}
	return "allowAll: true"
}

func (b *builder) source(p *AuthorizationPolicy, s *AuthorizationSource, block []string) *securityv1beta1.Source {
	out := &securityv1beta1.Source{
		ServiceAccounts: b.serviceAccounts(s.ServiceAccounts), NotServiceAccounts: b.serviceAccounts(s.NotServiceAccounts),
		Namespaces: s.Namespaces, NotNamespaces: s.NotNamespaces, Principals: s.Principals, NotPrincipals: s.NotPrincipals,
		RequestPrincipals: s.RequestPrincipals, NotRequestPrincipals: s.NotRequestPrincipals,
		IpBlocks: s.IPBlocks, NotIpBlocks: s.NotIPBlocks, RemoteIpBlocks: s.RemoteIPBlocks, NotRemoteIpBlocks: s.NotRemoteIPBlocks,
	}
	identities := []named{
		{"principals", s.Principals},
		{"notPrincipals", s.NotPrincipals},
		{"namespaces", s.Namespaces},
		{"notNamespaces", s.NotNamespaces},
		{"serviceAccounts", s.ServiceAccounts},
		{"notServiceAccounts", s.NotServiceAccounts},
		{"requestPrincipals", s.RequestPrincipals},
		{"notRequestPrincipals", s.NotRequestPrincipals},
	}
	addresses := []named{{"ipBlocks", s.IPBlocks}, {"notIpBlocks", s.NotIPBlocks}, {"remoteIpBlocks", s.RemoteIPBlocks}, {"notRemoteIpBlocks", s.NotRemoteIPBlocks}}
	set := 0
	for i, l := range identities {
		if len(l.values) == 0 {
			continue
		}
		set++
		at := below(block, l.name)
		if !strings.HasSuffix(strings.ToLower(l.name), "namespaces") { // they may have a * anywhere
			b.wildcards(l.values, "", at)
		} else if slices.Contains(l.values, "") {
			b.fail(at, "leave it out, or write a value", "one of the values is empty")
		}
		if p.Action == "CUSTOM" {
			b.fail(at, "use ipBlocks, remoteIpBlocks, to or when, and let the provider look at identities", "Istio does not support identities of callers with action CUSTOM")
		}
		if strings.HasSuffix(strings.ToLower(l.name), "principals") {
			b.noScheme(l.values, at)
		}
		if i < 4 && len(s.ServiceAccounts)+len(s.NotServiceAccounts) > 0 {
			b.fail(at, "write two items of from if either is meant, or principals alone if both are", "cannot stand beside serviceAccounts in one item: Istio refuses that")
		}
	}
	for _, l := range addresses {
		set += len(l.values)
		for i, v := range l.values {
			if !isBlock(v) {
				b.fail(below(block, l.name, index(i)), "write 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32", "%q is neither an IP address nor a CIDR block", v)
			}
		}
	}
	if set == 0 {
		b.fail(block, "name callers, such as serviceAccounts: [NAMESPACE/NAME], or leave from out if everybody is meant", "names nobody, which matches everybody")
	}
	return out
}

// named is a list with its attribute's name.
type named struct {
	name   string
	values []string
}

// serviceAccounts writes names out with their namespace, so that the policy means the same wherever it is copied to.
func (b *builder) serviceAccounts(list []string) []string {
	var out []string
	for _, name := range list {
		if !strings.Contains(name, "/") && b.app.Namespace != "" {
			name = b.app.Namespace + "/" + name
		}
		out = append(out, name)
	}
	return out
}

func isBlock(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(text)
	return err == nil
}

// noScheme tells of identities written as in certificates: Istio compares without the scheme.
func (b *builder) noScheme(values []string, block []string) {
	for i, v := range values {
		if rest, ok := strings.CutPrefix(v, "spiffe://"); ok {
			b.fail(below(block, index(i)), "write "+rest, "spiffe:// is no part of a principal, and the rule would match nobody")
		}
	}
}

// wildcards tells of values that Istio would take by the letter or not at all, and so match nothing.
func (b *builder) wildcards(values []string, hint string, block []string) {
	for i, v := range values {
		at := below(block, index(i))
		inner := strings.TrimSuffix(strings.TrimPrefix(v, "*"), "*")
		switch {
		case v == "":
			b.fail(at, "leave it out, or write a value", "is empty")
		case strings.Contains(inner, "*"), len(v) > 1 && strings.HasPrefix(v, "*") && strings.HasSuffix(v, "*"):
			b.fail(at, "write a * at the beginning or at the end, not both"+hint, "%q: Istio takes this * by the letter, and the rule would match nothing", v)
		}
	}
}

var methodName = regexp.MustCompile(`^([A-Z]+\*?|\*[A-Z]*)$`)

func (b *builder) operation(o *AuthorizationOperation, block []string) *securityv1beta1.Operation {
	out := &securityv1beta1.Operation{
		Methods: o.Methods, NotMethods: o.NotMethods, Paths: o.Paths, NotPaths: o.NotPaths, Hosts: o.Hosts, NotHosts: o.NotHosts,
		Ports: b.ports(o.Ports, below(block, "ports")), NotPorts: b.ports(o.NotPorts, below(block, "notPorts")),
	}
	for _, l := range []named{{"methods", o.Methods}, {"notMethods", o.NotMethods}} {
		for i, m := range l.values {
			if !methodName.MatchString(m) {
				b.fail(below(block, l.name, index(i)), "write it in capitals, such as GET", "%q is no HTTP method, and the rule would never match", m)
			}
		}
	}
	b.paths(o.Paths, below(block, "paths"))
	b.paths(o.NotPaths, below(block, "notPaths"))
	b.wildcards(o.Hosts, "", below(block, "hosts"))
	b.wildcards(o.NotHosts, "", below(block, "notHosts"))
	if len(o.Methods)+len(o.NotMethods)+len(o.Paths)+len(o.NotPaths)+len(o.Ports)+len(o.NotPorts)+len(o.Hosts)+len(o.NotHosts) == 0 {
		b.fail(block, "name methods, paths, ports or hosts, or leave to out if everything is meant", "names nothing, which matches everything")
	}
	return out
}

// paths tells of paths that no request has. The query is no part of what Istio compares.
func (b *builder) paths(values []string, block []string) {
	var plain []string
	for i, v := range values {
		at := below(block, index(i))
		template := security.ContainsPathTemplate(v)
		switch {
		case strings.Contains(v, "?"):
			b.fail(at, "leave the query out", "%q: a path is compared without its query, and the rule would never match", v)
		case v != "" && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "*"):
			b.fail(at, "write /"+v, "%q does not begin with /, and the rule would never match", v)
		default:
			if err := security.CheckValidPathTemplate("paths", []string{v}); err != nil {
				b.fail(at, "write {*} for one segment and {**} for the rest, each as a segment of its own", "%w", err)
			} else if template && strings.Contains(strings.NewReplacer("{*}", "", "{**}", "").Replace(v), "*") {
				b.fail(at, "write {*} or {**} in place of *", "%q: a * does not work beside {*}", v)
			}
		}
		if template {
			v = "/" // looked at above
		}
		plain = append(plain, v)
	}
	b.wildcards(plain, "; or {*} for one segment of a path", block)
}

// condition holds a condition against what Istio knows.
func (b *builder) condition(p *AuthorizationPolicy, c AuthorizationCondition, block []string) {
	if len(c.Values)+len(c.NotValues) == 0 {
		b.fail(block, "write values: or notValues:", "says nothing of %s", c.Key)
	}
	if err := security.ValidateAttribute(c.Key, slices.Concat(c.Values, c.NotValues)); err != nil {
		b.fail(block, conditionHint, "%s: %w", c.Key, err)
	}
	identity := slices.Contains([]string{"source.namespace", "source.serviceAccount", "source.principal", "source.trustDomain"}, c.Key)
	if p.Action == "CUSTOM" && (identity || strings.HasPrefix(c.Key, "request.auth.")) {
		b.fail(below(block, "key"), "let the provider look at identities", "Istio does not support %s with action CUSTOM", c.Key)
	}
}

// httpOnly warns of rules that treat a TCP port in a way that nobody expects: Istio drops what is for HTTP from a DENY rule there, which then refuses
// everything, and an ALLOW rule altogether.
func (b *builder) httpOnly(p *AuthorizationPolicy, r *AuthorizationRule, block []string) {
	port := b.tcpPort()
	if port == "" || !r.needsHTTP() {
		return
	}
	switch p.action() {
	case "DENY":
		b.warn(block, "add ports to each item of to: those of the container that speak HTTP",
			"the rule is about HTTP: on TCP port %s Istio leaves that out, and it refuses every connection that the rest of the rule matches", port)
	case "ALLOW":
		b.warn(block, "add a rule with to: [{ports: [PORT]}] for that port, if it is to be reached", "the rule is about HTTP, and lets nobody in on TCP port %s", port)
	}
}

// needsHTTP says whether the rule asks for something that only HTTP has on ports that it does not name.
func (r *AuthorizationRule) needsHTTP() bool {
	http, everywhere := false, len(r.To) == 0
	for _, o := range r.To {
		if len(o.Ports) > 0 {
			continue
		}
		everywhere = true
		http = http || len(o.Methods)+len(o.NotMethods)+len(o.Paths)+len(o.NotPaths)+len(o.Hosts)+len(o.NotHosts) > 0
	}
	if !everywhere {
		return false
	}
	for _, s := range r.From {
		http = http || len(s.RequestPrincipals)+len(s.NotRequestPrincipals) > 0
	}
	for _, c := range r.When {
		if c.Key == "destination.port" && len(c.Values) > 0 {
			return false
		}
		http = http || strings.HasPrefix(c.Key, "request.")
	}
	return http
}
