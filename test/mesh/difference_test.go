package mesh_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/test/mesh"
)

// difference says what any proxy of the two meshes is told otherwise, resource by resource; empty when nothing is.
func difference(a, b *mesh.Mesh) string {
	var out strings.Builder
	proxies := a.Proxies()
	for _, p := range b.Proxies() {
		if !slices.ContainsFunc(proxies, func(other mesh.Proxy) bool { return other.String() == p.String() }) {
			proxies = append(proxies, p)
		}
	}
	for _, p := range proxies {
		compareConfigs(&out, p, a.Config(p), b.Config(p))
	}
	return out.String()
}

func compareConfigs(out *strings.Builder, p mesh.Proxy, a, b mesh.Config) {
	resources(out, p, "Listeners", a.Listeners, b.Listeners)
	resources(out, p, "Routes", a.Routes, b.Routes)
	resources(out, p, "Clusters", a.Clusters, b.Clusters)
	resources(out, p, "Endpoints", a.Endpoints, b.Endpoints)
}

func resources(out *strings.Builder, p mesh.Proxy, kind string, a, b map[string]any) {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if diff := gocmp.Diff(a[name], b[name]); diff != "" {
			fmt.Fprintf(out, "%s: %s[%q]:\n%s\n", p, kind, name, diff)
		}
	}
}
