package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config/host"

	"github.com/mooring-dev/mooring/render/check/world"
)

// hiddenDependency finds services that a namespace is expected to call, since a policy at their side lets it, and that its Sidecar does not let it see. Routes are no
// such sign: istiod gives a proxy the destinations of the routes that it sees, whatever its Sidecar says.
var hiddenDependency = meshRule{
	Rule: Rule{
		Code: "MOOR046", Level: Warning,
		Title: "a Sidecar hides a service that its workloads may call",
		Mend:  "add the service to egress.hosts of the Sidecar, or take the callers from the policy",
	},
	check: func(_ context.Context, v *view) {
		scopes := v.sidecarScopes()
		if len(scopes) == 0 {
			return
		}
		for _, p := range v.policies() {
			if len(p.selector()) == 0 || p.GetAction() != security.AuthorizationPolicy_ALLOW {
				continue
			}
			for _, s := range v.behind(p) {
				for _, caller := range callers(p) {
					v.reportHidden(p.object, s, caller, scopes)
				}
			}
		}
	},
}

// scope is the Sidecar that holds for all workloads of a namespace which have none of their own.
type scope struct {
	object *world.Object
	*networking.Sidecar
}

// sidecarScopes are the Sidecars without a workload selector, by namespace; that of the root namespace is the default of all others.
func (v *view) sidecarScopes() map[string]scope {
	scopes := map[string]scope{}
	for o, spec := range specs[*networking.Sidecar](v, networkingGroup, "Sidecar") {
		if len(spec.GetWorkloadSelector().GetLabels()) == 0 && scopes[o.ID.Namespace].object == nil {
			scopes[o.ID.Namespace] = scope{o, spec}
		}
	}
	return scopes
}

// behind are the Services whose workloads the policy is for.
func (v *view) behind(p authorization) []service {
	var all []service
	for _, s := range v.services()[p.object.ID.Namespace] {
		covers := true
		for key, value := range p.selector() {
			covers = covers && s.Selector[key] == value
		}
		if covers {
			all = append(all, s)
		}
	}
	return all
}

// callers are the namespaces that a policy names, one by one and without patterns.
func callers(p authorization) []string {
	named := map[string]bool{}
	for _, rule := range p.GetRules() {
		for _, from := range rule.GetFrom() {
			source := from.GetSource()
			for _, ns := range source.GetNamespaces() {
				named[ns] = true
			}
			for _, account := range source.GetServiceAccounts() {
				if ns, _, ok := strings.Cut(account, "/"); ok {
					named[ns] = true
				}
			}
			for _, principal := range source.GetPrincipals() {
				if parts := strings.Split(principal, "/"); len(parts) == 5 && parts[1] == "ns" && parts[3] == "sa" {
					named[parts[2]] = true
				}
			}
		}
	}
	maps.DeleteFunc(named, func(ns string, _ bool) bool {
		return ns == "" || strings.Contains(ns, "*") || ns == p.object.ID.Namespace
	})
	return slices.Sorted(maps.Keys(named))
}

func (v *view) reportHidden(policy *world.Object, s service, caller string, scopes map[string]scope) {
	scope, own := scopes[caller]
	if !own {
		scope = scopes[v.rootNamespace()]
	}
	if scope.object == nil || scope.imports(caller, s) || v.routed(caller, s) {
		return
	}
	if scope.object.Foreign && policy.Foreign {
		return
	}
	if !scope.object.Foreign {
		v.report(scope.object, problem{
			Field:   "spec.egress",
			Message: fmt.Sprintf("hides %s from the workloads in %s, and %s lets them call it", s.object.ID, caller, policy.ID),
			Mend:    fmt.Sprintf("add %s/%s to egress.hosts: what a proxy does not know is sent on as it is, without mutual TLS, or not at all", s.object.ID.Namespace, s.host),
		})
		return
	}
	v.report(policy, problem{
		Field:   "spec.rules",
		Message: fmt.Sprintf("lets the workloads in %s call %s, which %s hides from them", caller, s.object.ID, scope.object.ID),
		Mend:    fmt.Sprintf("have %s/%s added to egress.hosts of %s", s.object.ID.Namespace, s.host, scope.object.ID),
	})
}

// imports says whether the Sidecar lets its workloads see the service. A Sidecar without egress lets them see all.
func (s scope) imports(namespace string, wanted service) bool {
	if len(s.GetEgress()) == 0 {
		return true
	}
	for _, listener := range s.GetEgress() {
		for _, entry := range listener.GetHosts() {
			ns, name, ok := strings.Cut(entry, "/")
			if !ok {
				ns, name = "*", entry
			}
			if ns == "." {
				ns = namespace
			}
			if (ns == "*" || ns == wanted.object.ID.Namespace) && host.Name(wanted.host).SubsetOf(host.Name(name)) {
				return true
			}
		}
	}
	return false
}

// routed says whether a VirtualService of the namespace leads to the service: its proxies know it then.
func (v *view) routed(namespace string, s service) bool {
	for o, spec := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
		if o.ID.Namespace != namespace {
			continue
		}
		for _, r := range spec.GetHttp() {
			for _, d := range r.GetRoute() {
				if fullHost(d.GetDestination().GetHost(), namespace) == s.host {
					return true
				}
			}
		}
		for _, r := range spec.GetTcp() {
			for _, d := range r.GetRoute() {
				if fullHost(d.GetDestination().GetHost(), namespace) == s.host {
					return true
				}
			}
		}
	}
	return false
}
