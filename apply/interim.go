package apply

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// keeping gives an object as it is to be, with what of the live one must not go yet: the subsets of a DestinationRule, the ports of a Service, the
// hosts and ports of a ServiceEntry, the hosts of a Gateway. These lists are atomic, or nearly so, so what is kept is written by us for a while. It
// is false where no one object can be both.
func keeping(want, live *unstructured.Unstructured, keep things) (*unstructured.Unstructured, bool) {
	if len(keep) == 0 {
		return want, true
	}
	form := want.DeepCopy()
	// The live object was drifted with a hash of what Git says; this is not it.
	unstructured.RemoveNestedField(form.Object, "metadata", "annotations", AppliedAnnotation)
	keepExports(form, live, keep)
	switch want.GroupVersionKind().GroupKind() {
	case kindDestinationRule:
		return form, keepSubsets(form, live, keep)
	case kindService:
		keepPorts(form, live, keep, fullName(live.GetName(), live.GetNamespace()), "port")
		return form, true
	case kindServiceEntry:
		return form, keepHosts(form, live, keep)
	case kindGateway:
		return form, keepServers(form, live, keep)
	default:
		return nil, false
	}
}

// keepExports keeps the namespaces that the live object is told to.
func keepExports(form, live *unstructured.Unstructured, keep things) {
	var kept []string
	for t := range keep {
		if t.what == anExport && !slices.Contains(kept, t.part) {
			kept = append(kept, t.part)
		}
	}
	if len(kept) == 0 {
		return
	}
	path, value := []string{"spec", "exportTo"}, any(nil)
	all := append(exportsOf(form), kept...)
	slices.Sort(all)
	all = slices.Compact(all)
	switch {
	case form.GetKind() == kindService.Kind:
		path, value = []string{"metadata", "annotations", exportAnnotation}, strings.Join(all, ",")
	default:
		value = anySlice(all)
	}
	if slices.Contains(kept, everywhere) {
		value = valueAt(live.Object, path...) // however it says all
	}
	if value == nil {
		unstructured.RemoveNestedField(form.Object, path...)
		return
	}
	_ = unstructured.SetNestedField(form.Object, value, path...)
}

func anySlice(all []string) []any {
	var list []any
	for _, s := range all {
		list = append(list, s)
	}
	return list
}

func keepSubsets(form, live *unstructured.Unstructured, keep things) bool {
	host := fullName(textAt(live.Object, "spec", "host"), live.GetNamespace())
	if fullName(textAt(form.Object, "spec", "host"), form.GetNamespace()) != host {
		return false // one rule speaks of one host
	}
	keepItems(form, live, "subsets", func(subset map[string]any) bool {
		return keep[thing{aSubset, host, textAt(subset, "name")}]
	})
	return true
}

// keepItems appends those of the live list of spec that are kept.
func keepItems(form, live *unstructured.Unstructured, field string, kept func(map[string]any) bool) {
	list, _, _ := unstructured.NestedSlice(form.Object, "spec", field)
	for _, item := range mapsAt(live.DeepCopy().Object, "spec", field) {
		if kept(item) {
			list = append(list, item)
		}
	}
	_ = unstructured.SetNestedSlice(form.Object, list, "spec", field)
}

// keepPorts keeps the ports that lie under a host. A name that the new ports have is taken from the old one.
func keepPorts(form, live *unstructured.Unstructured, keep things, host, field string) {
	taken := make(map[any]bool)
	for _, port := range mapsAt(form.Object, "spec", "ports") {
		taken[port["name"]] = true
		if node := port["nodePort"]; node != nil {
			taken[node] = true
		}
	}
	several := len(taken) > 0
	keepItems(form, live, "ports", func(port map[string]any) bool {
		if !keep[thing{aPort, host, numberAt(port, field)}] {
			return false
		}
		if taken[port["nodePort"]] {
			delete(port, "nodePort")
		}
		if name := cmp.Or(textAt(port, "name"), "tcp"); taken[port["name"]] || several && textAt(port, "name") == "" {
			// Istio reads the protocol before the first hyphen.
			port["name"] = name + "-before"
		}
		return true
	})
	// One port may be nameless, two may not.
	list, _, _ := unstructured.NestedSlice(form.Object, "spec", "ports")
	for i, item := range list {
		if port, ok := item.(map[string]any); ok && len(list) > 1 && textAt(port, "name") == "" {
			port["name"] = "tcp-" + numberAt(port, field)
			list[i] = port
		}
	}
	_ = unstructured.SetNestedSlice(form.Object, list, "spec", "ports")
}

// keepHosts keeps hosts of a ServiceEntry and the ports that they had.
func keepHosts(form, live *unstructured.Unstructured, keep things) bool {
	hosts := textsAt(form.Object, "spec", "hosts")
	ports := make(things)
	for _, host := range textsAt(live.Object, "spec", "hosts") {
		if keep[thing{aHost, host, ""}] && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		for one := range keep {
			if one.what == aPort && one.of == host {
				ports[thing{aPort, "", one.part}] = true
			}
		}
	}
	for _, port := range mapsAt(form.Object, "spec", "ports") {
		delete(ports, thing{aPort, "", numberAt(port, "number")})
	}
	if err := unstructured.SetNestedStringSlice(form.Object, hosts, "spec", "hosts"); err != nil {
		return false
	}
	keepPorts(form, live, ports, "", "number")
	return true
}

// keepServers keeps hosts of a Gateway, each under the server that had it: beside the new hosts where there is a server of the same port and TLS
// settings, else as a server of its own.
func keepServers(form, live *unstructured.Unstructured, keep things) bool {
	name := live.GetNamespace() + "/" + live.GetName()
	servers, _, _ := unstructured.NestedSlice(form.Object, "spec", "servers")
	for _, server := range mapsAt(live.DeepCopy().Object, "spec", "servers") {
		var hosts []any
		for _, host := range textsAt(server, "hosts") {
			if keep[thing{aServer, name, bare(host)}] {
				hosts = append(hosts, host)
			}
		}
		if len(hosts) == 0 {
			continue
		}
		if !addHosts(servers, server, hosts) {
			server["hosts"] = hosts
			if port, ok := server["port"].(map[string]any); ok {
				port["name"] = uniqueName(servers, textAt(port, "name"))
			}
			servers = append(servers, server)
		}
	}
	return unstructured.SetNestedSlice(form.Object, servers, "spec", "servers") == nil
}

// addHosts to the server that differs in its hosts alone.
func addHosts(servers []any, like map[string]any, hosts []any) bool {
	for _, item := range servers {
		server, ok := item.(map[string]any)
		if !ok || numberAt(server, "port", "number") != numberAt(like, "port", "number") ||
			textAt(server, "port", "protocol") != textAt(like, "port", "protocol") || !equality.Semantic.DeepEqual(server["tls"], like["tls"]) {
			continue
		}
		list, _ := server["hosts"].([]any)
		server["hosts"] = append(list, hosts...)
		return true
	}
	return false
}

func uniqueName(servers []any, name string) string {
	taken := slices.ContainsFunc(servers, func(item any) bool {
		server, _ := item.(map[string]any)
		return textAt(server, "port", "name") == name
	})
	if !taken {
		return name
	}
	return strings.TrimSuffix(name, "-before") + "-before"
}

// permissive gives a PeerAuthentication on its way between DISABLE and STRICT: wherever the two differ, both kinds of traffic are taken. It is nil where
// there is no such way to go. inherited is the mode of what the live object, which may be nil, does not say.
func permissive(want, live *unstructured.Unstructured, inherited string) *unstructured.Unstructured {
	form, changed := want.DeepCopy(), false
	soften := func(path ...string) {
		was, will := inherited, textAt(want.Object, path...)
		if live != nil {
			was = knownMode(textAt(live.Object, path...), inherited)
		}
		will = knownMode(will, inherited)
		if was == will || was == modePermissive || will == modePermissive {
			return
		}
		if unstructured.SetNestedField(form.Object, modePermissive, path...) == nil {
			changed = true
		}
	}
	soften("spec", "mtls", "mode")
	ports, _ := valueAt(want.Object, "spec", "portLevelMtls").(map[string]any)
	for port := range ports {
		soften("spec", "portLevelMtls", port, "mode")
	}
	if !changed {
		return nil
	}
	return form
}

// knownMode is a mode, or the one that counts where an object says none.
func knownMode(mode, inherited string) string {
	if mode == "" || mode == "UNSET" {
		return inherited
	}
	return mode
}

// Modes of mutual TLS.
const (
	modeStrict     = "STRICT"
	modePermissive = "PERMISSIVE"
	modeDisable    = "DISABLE"
)
