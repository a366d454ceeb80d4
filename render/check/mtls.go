package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/util"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// tlsAgainstPeers finds DestinationRules that make callers speak what the proxies of a Service refuse.
//
// A rule without tls changes nothing here: Istio 1.31 turns mutual TLS on by itself for it, as for no rule at all.
var tlsAgainstPeers = meshRule{
	Rule: Rule{
		Code: "MOOR023", Level: Error,
		Title: "callers and proxies of a Service do not agree on mutual TLS",
		Mend:  "leave tls out of the DestinationRule, so that Istio decides by itself",
	},
	check: func(_ context.Context, v *view) {
		m := &mutual{view: v, governed: map[string]bool{}}
		for o, rule := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
			h := fullHost(rule.GetHost(), o.ID.Namespace)
			m.governed[h] = true
			if strings.HasPrefix(h, "*") {
				m.wide = append(m.wide, h)
			}
		}
		for o, rule := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
			behind := m.behind(fullHost(rule.GetHost(), o.ID.Namespace))
			for _, asked := range tlsOf(rule) {
				m.compare(o, behind, asked)
			}
		}
	},
}

// mutual is what is looked at to find out who speaks what.
type mutual struct {
	*view
	// governed are the hosts of all DestinationRules, and wide those for many hosts.
	governed map[string]bool
	wide     []string
}

// askedTLS is a place in a DestinationRule where TLS can be asked for: the rule itself or a subset.
type askedTLS struct {
	field  string
	policy *networking.TrafficPolicy
	// labels of the subset.
	labels map[string]string
}

// tlsOf lists the places of a rule that have traffic policies.
func tlsOf(rule *networking.DestinationRule) []askedTLS {
	all := []askedTLS{{"spec.trafficPolicy", rule.GetTrafficPolicy(), nil}}
	for i, s := range rule.GetSubsets() {
		all = append(all, askedTLS{index("spec.subsets", i) + ".trafficPolicy", s.GetTrafficPolicy(), s.GetLabels()})
	}
	return all
}

// on gives the settings for a port of a Service, and where they are written; nil when this place has none.
func (a askedTLS) on(port int32) (*networking.ClientTLSSettings, string) {
	policy, ofPort := util.GetPortLevelTrafficPolicy(a.policy, &model.Port{Port: int(port)})
	if !ofPort {
		return policy.GetTls(), a.field + ".tls.mode"
	}
	for i, p := range a.policy.GetPortLevelSettings() {
		if p.GetPort().GetNumber() == uint32(port) {
			return policy.GetTls(), index(a.field+".portLevelSettings", i) + ".tls.mode"
		}
	}
	return policy.GetTls(), a.field
}

// compare what a rule asks for with what the workloads behind each Service take. One finding for each field is enough.
func (m *mutual) compare(o *world.Object, behind []service, asked askedTLS) {
	told := map[string]bool{}
	for _, s := range behind {
		for _, port := range s.Ports {
			tls, field := asked.on(port.Port)
			if tls == nil || told[field] || port.Protocol == corev1.ProtocolUDP || port.Protocol == corev1.ProtocolSCTP {
				continue
			}
			told[field] = m.comparePort(o, s, port, asked, tls.GetMode(), field)
		}
	}
}

// behind lists the Services whose callers go by a rule for the host. A rule for many hosts gives way to any that names the host more exactly.
func (m *mutual) behind(h string) []service {
	var all []service
	for _, ns := range slices.Sorted(maps.Keys(m.services())) {
		for _, s := range m.services()[ns] {
			if s.host == h || strings.HasPrefix(h, "*") && covers(h, s.host) && !m.governed[s.host] && !m.narrower(h, s.host) {
				all = append(all, s)
			}
		}
	}
	return all
}

// narrower says whether a rule for fewer hosts than h is for the host.
func (m *mutual) narrower(h, name string) bool {
	return slices.ContainsFunc(m.wide, func(w string) bool { return w != h && covers(h, w) && covers(w, name) })
}

func (m *mutual) comparePort(o *world.Object, s service, port corev1.ServicePort, asked askedTLS, mode networking.ClientTLSSettings_TLSmode, field string) bool {
	for _, w := range m.workloads()[s.object.ID.Namespace] {
		if !s.selects(w) || !w.selected(asked.labels) || !m.takesAll(w) {
			continue
		}
		target := w.targetPort(port)
		if target == 0 {
			continue
		}
		merged, those := m.modeOf(w)
		how := disagreement(mode, modeOn(merged, target))
		if how == "" {
			continue
		}
		p, place := says(those, m.rootNamespace(), target)
		if p.object == nil {
			continue
		}
		if ns := w.namespace; p.object.ID.Namespace != ns && !m.Knows(securityGroup, "PeerAuthentication", ns) {
			m.unknown("mutual TLS of "+s.host, m.Why(securityGroup, "PeerAuthentication"))
			continue
		}
		m.tell(o, p, field, place, fmt.Sprintf("mode %s for port %d of %s, but %s says %s on port %d of %s: %s",
			mode, port.Port, s.host, p.object.ID, modeOn(merged, target), target, w.object.ID, how))
		return true
	}
	return false
}

// tell of a disagreement at the object that the commit has, where only one of the two is.
func (m *mutual) tell(o *world.Object, p peer, field, place, message string) {
	if o.Foreign && !p.object.Foreign {
		m.report(p.object, problem{Field: place, Message: o.ID.String() + " asks for " + message, Mend: "change " + o.ID.String() + " first: " + m.rule.Mend})
		return
	}
	m.report(o, problem{Field: field, Message: message})
}

// takesAll says whether the proxy of a workload takes all its connections for certain, so that the PeerAuthentications are what counts.
func (m *mutual) takesAll(w workload) bool {
	for name := range maps.Keys(w.annotations) {
		if name == "traffic.sidecar.istio.io/excludeInboundPorts" || name == "traffic.sidecar.istio.io/includeInboundPorts" {
			return false
		}
	}
	if w.labels["sidecar.istio.io/inject"] == "" && m.Find(render.ID{Kind: "Namespace", Name: w.namespace}) == nil && !m.Knows("", "Namespace", "") {
		m.unknown("mutual TLS with "+w.object.ID.String(), m.Why("", "Namespace"))
		return false
	}
	return m.proxied(w) && !m.ownsInbound(w)
}

// disagreement says what comes of it; empty when both get on.
func disagreement(asked networking.ClientTLSSettings_TLSmode, taken model.MutualTLSMode) string {
	switch {
	case taken == model.MTLSStrict && asked == networking.ClientTLSSettings_DISABLE:
		return "the callers' plain text is refused"
	case taken == model.MTLSStrict && asked == networking.ClientTLSSettings_SIMPLE:
		return "callers without a certificate of the mesh are refused"
	case taken == model.MTLSDisable && asked == networking.ClientTLSSettings_ISTIO_MUTUAL:
		return "the callers' mutual TLS reaches a program that does not speak it"
	}
	return ""
}
