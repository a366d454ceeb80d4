package check

import (
	"context"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	authz "istio.io/istio/pilot/pkg/security/authz/model"
	"istio.io/istio/pkg/config/kube"
	"istio.io/istio/pkg/config/protocol"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render/check/world"
)

// httpOnTCP finds rules that ask for something that only HTTP has, for ports that carry something else.
var httpOnTCP = meshRule{
	Rule: Rule{
		Code: "MOOR037", Level: Warning,
		Title: "a rule asks for what only HTTP has, on a port that is not HTTP",
		Mend:  "name the Service's port http-… or give it an appProtocol if it carries HTTP; otherwise write a rule of its own for the port, with principals, namespaces or ipBlocks",
	},
	check: func(_ context.Context, v *view) {
		for _, p := range v.policies() {
			if p.onGateway() || p.GetAction() != security.AuthorizationPolicy_ALLOW && p.GetAction() != security.AuthorizationPolicy_DENY {
				continue
			}
			for i, r := range p.GetRules() {
				if what, ok := httpOnly(p.object, r); ok {
					v.reportTCP(p, i, r, what)
				}
			}
		}
	},
}

// httpOnly asks Istio's generator what it makes of a rule for TCP.
func httpOnly(o *world.Object, r *security.Rule) (what string, only bool) {
	m, err := authz.New(types.NamespacedName{Namespace: o.ID.Namespace, Name: o.ID.Name}, r)
	if err != nil {
		return "", false
	}
	if _, err := m.Generate(true, false, 0); err != nil { // 0 allows: what it cannot express is an error then
		return err.Error(), true
	}
	return "", false
}

// reportTCP says what a rule does on a port that is TCP by the name of a Service's port, where the rule names the port or the workload has no others.
func (v *view) reportTCP(p authorization, i int, r *security.Rule, what string) {
	named := portsNamed(&security.AuthorizationPolicy{Rules: []*security.Rule{r}})
	if len(named) == 0 && len(p.selector()) == 0 {
		return // it is for whatever speaks HTTP
	}
	for _, w := range v.listening(p.object, p.selector()) {
		if v.servesGateway(w) {
			continue
		}
		tcp, others := v.tcpPorts(w)
		for _, t := range tcp {
			if !slices.ContainsFunc(named, func(n namedPort) bool { return n.port == t.port }) && (others || len(named) > 0) {
				continue
			}
			effect := "allows nothing there"
			if p.GetAction() == security.AuthorizationPolicy_DENY {
				effect = "leaves that part out, and denies more than it says"
			}
			v.report(p.object, problem{
				Field:   index("spec.rules", i),
				Message: fmt.Sprintf("port %d of %s carries no HTTP by the port %s of %s, and %s: the rule %s", t.port, w.object.ID, t.name, t.service, what, effect),
			})
			return
		}
	}
}

// servesGateway says whether the listeners of a workload come from Gateways: whether they carry HTTP is said there, and TLS that ends at one may well
// carry it. The names of a Service's ports decide nothing then.
func (v *view) servesGateway(w workload) bool {
	if w.annotations["inject.istio.io/templates"] == "gateway" {
		return true
	}
	for _, gw := range specs[*networking.Gateway](v, networkingGroup, "Gateway") {
		if len(gw.GetSelector()) > 0 && w.selected(gw.GetSelector()) {
			return true
		}
	}
	return false
}

// tcpPort is a port of a workload that carries something else than HTTP, and the Service's port that says so.
type tcpPort struct {
	port          uint32
	name, service string
}

// tcpPorts lists them. Others says whether the workload has ports that carry HTTP, or that Istio finds out about by looking at what is sent.
func (v *view) tcpPorts(w workload) (tcp []tcpPort, others bool) {
	other := map[uint32]bool{}
	for _, s := range v.services()[w.namespace] {
		if !s.selects(w) {
			continue
		}
		for _, p := range s.Ports {
			switch proto := kube.ConvertProtocol(p.Port, p.Name, p.Protocol, p.AppProtocol); {
			case proto == protocol.UDP:
			case proto.IsTCP() && w.targetPort(p) != 0:
				tcp = append(tcp, tcpPort{w.targetPort(p), p.Name, s.object.ID.String()})
			default:
				other[w.targetPort(p)] = true
			}
		}
	}
	return slices.DeleteFunc(tcp, func(t tcpPort) bool { return other[t.port] }), len(other) > 0
}
