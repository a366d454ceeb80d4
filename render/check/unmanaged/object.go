package unmanaged

import (
	"strings"

	"istio.io/istio/pkg/config/host"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// meshGateway is what a VirtualService calls all sidecars.
const meshGateway = "mesh"

// readHosts gives the hosts that the object is about, in full. Those of a Gateway are without the namespaces before them.
func (o *object) readHosts() []string {
	var names []string
	switch {
	case o.id.Group == "" && o.id.Kind == "Service":
		names = []string{o.id.Name}
	case o.is("VirtualService"), o.is("ServiceEntry"):
		names = o.list("spec", "hosts")
	case o.is("DestinationRule"):
		names = []string{o.text("spec", "host")}
	case o.is("Gateway"):
		servers, _, _ := unstructured.NestedFieldNoCopy(o.tree(), "spec", "servers")
		for _, s := range items(servers) {
			hosts, _, _ := unstructured.NestedStringSlice(s, "hosts")
			for _, h := range hosts {
				if _, after, ok := strings.Cut(h, "/"); ok {
					h = after
				}
				names = append(names, h)
			}
		}
		return names // of these, none is completed
	}
	for i, name := range names {
		names[i] = full(name, o.id.Namespace)
	}
	return names
}

// full is the name of a host as Istio completes it: a word without a dot is a Service of the same namespace.
func full(name, namespace string) string {
	if name == "" || strings.Contains(name, ".") || strings.HasPrefix(name, "*") {
		return strings.ToLower(name)
	}
	return name + "." + namespace + ".svc.cluster.local"
}

// boundTo are the gateways of a VirtualService, as namespace/name, and "mesh" for the sidecars.
func (o *object) boundTo() []string {
	names := o.list("spec", "gateways")
	if len(names) == 0 {
		return []string{meshGateway}
	}
	for i, name := range names {
		if name != meshGateway && !strings.Contains(name, "/") {
			names[i] = o.id.Namespace + "/" + name
		}
	}
	return names
}

// covers says whether a host, which may begin with a star, stands for another or for more than that.
func covers(pattern, name string) bool { return host.Name(name).SubsetOf(host.Name(pattern)) }

// selector of what an object is for; empty where it names no labels.
func (o *object) selector() map[string]string {
	for _, path := range [][]string{{"spec", "selector", "matchLabels"}, {"spec", "workloadSelector", "labels"}, {"spec", "workloadSelector", "matchLabels"}} {
		if found := o.texts(path...); len(found) > 0 {
			return found
		}
	}
	if o.is("Gateway") || o.id.Kind == "Service" {
		return o.texts("spec", "selector")
	}
	return nil
}

// target is an object that a policy names instead of a selector.
type target struct{ kind, name string }

func (o *object) targets() []target {
	refs, _, _ := unstructured.NestedFieldNoCopy(o.tree(), "spec", "targetRefs")
	all := items(refs)
	if one, found, _ := unstructured.NestedFieldNoCopy(o.tree(), "spec", "targetRef"); found {
		if ref, ok := one.(map[string]any); ok {
			all = append(all, ref)
		}
	}
	var targets []target
	for _, ref := range all {
		targets = append(targets, target{kind: text(ref, "kind"), name: text(ref, "name")})
	}
	return targets
}

func (o *object) text(path ...string) string {
	s, _, _ := unstructured.NestedString(o.tree(), path...)
	return s
}

func (o *object) list(path ...string) []string {
	all, _, _ := unstructured.NestedStringSlice(o.tree(), path...)
	return all
}

func (o *object) texts(path ...string) map[string]string {
	all, _, _ := unstructured.NestedStringMap(o.tree(), path...)
	return all
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func items(v any) []map[string]any {
	list, _ := v.([]any)
	var all []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
