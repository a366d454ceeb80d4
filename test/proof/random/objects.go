package random

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

type (
	object = map[string]any
	list   = []any
)

// folder is where Files puts the objects.
const folder = "mesh"

// Objects is what Git has now, in no particular order, but always the same.
func (m *Mesh) Objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	add := func(apiVersion, kind, namespace, name string, body object) {
		body["apiVersion"], body["kind"] = apiVersion, kind
		u := &unstructured.Unstructured{Object: body}
		u.SetName(name)
		if namespace != "" {
			u.SetNamespace(namespace)
		}
		out = append(out, u)
	}
	for _, s := range m.spaces {
		m.writeSpace(add, s)
	}
	for _, s := range m.services {
		m.writeService(add, s)
	}
	for _, g := range m.gateways {
		add("networking.istio.io/v1", "Gateway", g.space.name, g.name, object{"spec": object{
			"selector": object{"istio": "ingressgateway"},
			"servers":  list{object{"hosts": list{"*." + g.domain}, "port": object{"number": int64(80), "name": "http", "protocol": "HTTP"}}},
		}})
	}
	for _, v := range m.routes {
		add("networking.istio.io/v1", "VirtualService", v.space.name, v.name, object{"spec": v.spec()})
	}
	for _, p := range m.policies {
		add("security.istio.io/v1", "AuthorizationPolicy", p.service.space.name, p.name, object{"spec": object{
			"selector": object{"matchLabels": object{"app": p.service.name}},
			"rules":    list{object{"from": list{object{"source": p.callers()}}}},
		}})
	}
	return out
}

// callers are known by their certificates, where there are any.
func (p *policy) callers() object {
	if p.service.space.mtls == "DISABLE" {
		return object{"ipBlocks": list{"10.0.0.0/8"}}
	}
	return object{"namespaces": list{p.from.name, "istio-system"}}
}

type adder func(apiVersion, kind, namespace, name string, body object)

func (m *Mesh) writeSpace(add adder, s *space) {
	labels := object{"istio-injection": "enabled"}
	for key, value := range m.labels {
		labels[key] = value
	}
	add("v1", "Namespace", "", s.name, object{"metadata": object{"labels": labels}})
	if s.mtls != "" {
		add("security.istio.io/v1", "PeerAuthentication", s.name, "default", object{"spec": object{"mtls": object{"mode": s.mtls}}})
	}
	if s.sidecar {
		hosts := list{"./*", "istio-system/*"}
		for _, other := range m.needs(s) {
			hosts = append(hosts, other.name+"/*")
		}
		add("networking.istio.io/v1", "Sidecar", s.name, "default", object{"spec": object{"egress": list{object{"hosts": hosts}}}})
	}
}

// needs are the other namespaces that a Sidecar must let in: those that it was made for, and those of what the routes in them lead to.
func (m *Mesh) needs(s *space) []*space {
	seen := append([]*space{s}, s.sees...)
	for grown := true; grown; {
		grown = false
		for _, v := range m.routes {
			if !slices.Contains(seen, v.space) {
				continue
			}
			for _, t := range v.targets() {
				if !slices.Contains(seen, t.service.space) {
					seen, grown = append(seen, t.service.space), true
				}
			}
		}
	}
	others := slices.DeleteFunc(seen, func(other *space) bool { return other == s })
	slices.SortFunc(others, func(a, b *space) int { return cmp.Compare(a.name, b.name) })
	return slices.Compact(others)
}

func (s *service) host() string {
	if s.entry != "" {
		return s.name + ".ext.example"
	}
	return s.name + "." + s.space.name + ".svc.cluster.local"
}

func (m *Mesh) writeService(add adder, s *service) {
	protocol, name := "HTTP", "http"
	if s.tcp {
		protocol, name = "TCP", "tcp"
	}
	var ports list
	for i, p := range s.ports {
		ports = append(ports, object{"name": fmt.Sprintf("%s-%d", name, i), "number": int64(p.number), "protocol": protocol})
	}
	if s.entry != "" {
		m.writeEntry(add, s, ports)
	} else {
		writeWorkloads(add, s, ports)
	}
	if s.rule == "" {
		return
	}
	var subsets list
	for _, b := range s.subsets {
		subsets = append(subsets, object{"name": b.name, "labels": object{"version": b.version}})
	}
	add("networking.istio.io/v1", "DestinationRule", s.space.name, s.rule, object{"spec": object{
		"host": s.host(), "subsets": subsets,
		"trafficPolicy": object{"connectionPool": object{"tcp": object{"maxConnections": int64(s.limit)}}},
	}})
}

func (m *Mesh) writeEntry(add adder, s *service, ports list) {
	hosts := list{s.host()}
	if s.alias != "" {
		hosts = append(hosts, s.alias)
	}
	var endpoints list
	for i, v := range s.versions {
		sum := 0
		for _, c := range s.name + v {
			sum = (sum*31 + int(c)) % 62500
		}
		endpoints = append(endpoints, object{
			"address": fmt.Sprintf("10.%d.%d.%d", 100+i, 1+sum/250, 1+sum%250), "labels": object{"app": s.name, "version": v},
		})
	}
	add("networking.istio.io/v1", "ServiceEntry", s.space.name, s.entry, object{"spec": object{
		"hosts": hosts, "ports": ports, "resolution": "STATIC", "location": "MESH_INTERNAL", "endpoints": endpoints,
	}})
}

// writeWorkloads writes a Service and a Deployment for each version.
func writeWorkloads(add adder, s *service, ports list) {
	var own list
	for _, p := range ports {
		p := p.(object)
		own = append(own, object{"name": p["name"], "port": p["number"], "targetPort": int64(8000), "protocol": "TCP"})
	}
	add("v1", "Service", s.space.name, s.name, object{"spec": object{"selector": object{"app": s.name}, "ports": own}})
	for _, v := range s.versions {
		labels := object{"app": s.name, "version": v}
		add("apps/v1", "Deployment", s.space.name, s.name+"-"+v, object{"spec": object{
			"selector": object{"matchLabels": labels},
			"template": object{
				"metadata": object{"labels": labels},
				"spec": object{"containers": list{object{
					"name": "app", "image": "registry.example/" + s.name + ":" + v, "ports": list{object{"containerPort": int64(8000)}},
				}}},
			},
		}})
	}
}

func (v *virtualService) spec() object {
	spec := object{}
	switch {
	case v.of != nil:
		spec["hosts"] = list{v.of.host()}
	case v.in != nil:
		var hosts list
		for _, h := range v.hosts {
			hosts = append(hosts, h)
		}
		spec["hosts"], spec["gateways"] = hosts, list{v.in.space.name + "/" + v.in.name}
	}
	var rules list
	for _, r := range v.rules {
		rules = append(rules, r.spec())
	}
	if v.of != nil && v.of.tcp {
		spec["tcp"] = rules
	} else {
		spec["http"] = rules
	}
	return spec
}

func (r *rule) spec() object {
	out := object{}
	if r.path != "" {
		out["match"] = list{object{"uri": object{"prefix": r.path}}}
	}
	if r.delegate != nil {
		out["delegate"] = object{"name": r.delegate.name, "namespace": r.delegate.space.name}
		return out
	}
	var to list
	for _, t := range r.to {
		one := object{"destination": t.spec()}
		if t.weight > 0 {
			one["weight"] = int64(t.weight)
		}
		to = append(to, one)
	}
	out["route"] = to
	if r.mirror != nil {
		out["mirror"] = r.mirror.spec()
	}
	return out
}

func (t *target) spec() object {
	out := object{"host": t.service.host(), "port": object{"number": int64(t.port.number)}}
	if t.alias {
		out["host"] = t.service.alias
	}
	if t.subset != nil {
		out["subset"] = t.subset.name
	}
	return out
}

// targets are all that a VirtualService leads to, mirrors included.
func (v *virtualService) targets() []*target {
	var out []*target
	for _, r := range v.rules {
		out = append(out, r.to...)
		if r.mirror != nil {
			out = append(out, r.mirror)
		}
	}
	return out
}

// Files is the repository as it is now: the objects of each namespace in a file, and a kustomization that names these files, in the folder [Folder].
func (m *Mesh) Files() fstest.MapFS {
	texts := map[string][]byte{}
	for _, o := range m.Objects() {
		file := cmp.Or(o.GetNamespace(), "namespaces") + ".yaml"
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			panic(err) // maps and lists of text and numbers
		}
		texts[file] = append(append(texts[file], "---\n"...), text...)
	}
	out := fstest.MapFS{}
	names := list{}
	for name, text := range texts {
		out[folder+"/"+name] = &fstest.MapFile{Data: text, Mode: 0o644}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
	text, err := yaml.Marshal(object{"resources": names})
	if err != nil {
		panic(err)
	}
	out[folder+"/kustomization.yaml"] = &fstest.MapFile{Data: text, Mode: 0o644}
	return out
}

// Folder is the path of the kustomization in [Mesh.Files].
func (m *Mesh) Folder() string { return folder }

// Set renders what Git has now, as Mooring does.
func (m *Mesh) Set(ctx context.Context) (*render.Set, error) {
	return (&render.Renderer{}).Render(ctx, fs.FS(m.Files()), folder)
}
