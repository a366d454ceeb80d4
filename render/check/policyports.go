package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	security "istio.io/api/security/v1beta1"

	"github.com/mooring-dev/mooring/render/check/world"
)

// policyPorts finds ports in policies that are a Service's, where the proxy compares them with the workload's.
var policyPorts = meshRule{
	Rule: Rule{
		Code: "MOOR033", Level: Warning,
		Title: "a policy names the port of a Service, not that of the workload",
		Mend:  "write the port that the container listens on",
	},
	check: func(_ context.Context, v *view) {
		for o, spec := range specs[*security.PeerAuthentication](v, securityGroup, "PeerAuthentication") {
			for _, port := range slices.Sorted(maps.Keys(spec.GetPortLevelMtls())) {
				v.reportPort(o, spec.GetSelector().GetMatchLabels(), port, fmt.Sprintf("spec.portLevelMtls.%d", port))
			}
		}
		for _, p := range v.policies() {
			if p.onGateway() {
				continue
			}
			for _, used := range portsNamed(p.AuthorizationPolicy) {
				v.reportPort(p.object, p.selector(), used.port, used.field)
			}
		}
	},
}

// namedPort is a port in an AuthorizationPolicy and where it is written.
type namedPort struct {
	port  uint32
	field string
}

func portsNamed(spec *security.AuthorizationPolicy) []namedPort {
	var all []namedPort
	add := func(field string, values []string) {
		for i, value := range values {
			if port, err := strconv.ParseUint(value, 10, 16); err == nil {
				all = append(all, namedPort{uint32(port), index(field, i)})
			}
		}
	}
	for i, r := range spec.GetRules() {
		for j, to := range r.GetTo() {
			at := fmt.Sprintf("spec.rules[%d].to[%d].operation", i, j)
			add(at+".ports", to.GetOperation().GetPorts())
			add(at+".notPorts", to.GetOperation().GetNotPorts())
		}
		for j, when := range r.GetWhen() {
			if when.GetKey() == "destination.port" {
				add(fmt.Sprintf("spec.rules[%d].when[%d].values", i, j), when.GetValues())
				add(fmt.Sprintf("spec.rules[%d].when[%d].notValues", i, j), when.GetNotValues())
			}
		}
	}
	return all
}

// listening are the workloads that a policy is for, those of which the containers were read.
func (v *view) listening(policy *world.Object, selector map[string]string) []workload {
	return slices.DeleteFunc(v.selectedBy(policy.ID.Namespace, selector), func(w workload) bool { return len(w.containers) == 0 })
}

// reportPort says that a port leads to another one, where none of the workloads listens on it as far as is known.
func (v *view) reportPort(policy *world.Object, selector map[string]string, port uint32, field string) {
	message := ""
	picked := v.listening(policy, selector)
	if len(picked) == 0 && !v.Knows(appsGroup, "Deployment", policy.ID.Namespace) {
		v.unknown("the ports in "+policy.ID.String(), v.Why(appsGroup, "Deployment"))
	}
	for _, w := range picked {
		if w.has(port) {
			return
		}
		for _, s := range v.services()[w.namespace] {
			if !s.selects(w) {
				continue
			}
			for _, p := range s.Ports {
				target := w.targetPort(p)
				switch {
				case target == 0 || target == port:
					return
				case uint32(p.Port) == port && message == "":
					message = fmt.Sprintf("port %d is that of %s; policies go by the port of the workload, and %s listens on %d", port, s.object.ID, w.object.ID, target)
				}
			}
		}
	}
	if message != "" {
		v.report(policy, problem{Field: field, Message: message})
	}
}
