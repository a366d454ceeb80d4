package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-dev/mooring/render"
)

// DefaultClusterDomain is the DNS domain of a cluster unless its owner chose another.
const DefaultClusterDomain = "cluster.local"

// Expander replaces every AppConfiguration among rendered objects by what it stands for. The zero value is ready to use, by many goroutines.
type Expander struct {
	// ClusterDomain is the DNS domain of Services; empty means [DefaultClusterDomain].
	ClusterDomain string
}

var _ render.Expander = Expander{}

// Expand gives the objects with every AppConfiguration replaced. See [render.Expander].
func (e Expander) Expand(ctx context.Context, objects []render.Object) ([]render.Object, []render.Warning, error) {
	var (
		out      []render.Object
		warnings []render.Warning
		bad      render.Faults
		around   = survey(objects)
	)
	for _, o := range objects {
		if !isApp(o) {
			out = append(out, o)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		b, err := e.begin(o, around)
		if err != nil {
			bad.Add(err)
			continue
		}
		b.all()
		bad.Add(b.faults.Join())
		out = append(out, b.objects...)
		warnings = append(warnings, b.warnings...)
	}
	if err := bad.Join(); err != nil {
		return nil, nil, err
	}
	return out, warnings, nil
}

func isApp(o render.Object) bool {
	gvk := o.GroupVersionKind()
	return gvk.Group == Group && gvk.Kind == Kind
}

// begin reads an AppConfiguration.
func (e Expander) begin(o render.Object, around *surroundings) (*builder, error) {
	if v := o.GroupVersionKind().Version; v != Version {
		return nil, faultAt(o, nil, "write "+Group+"/"+Version, "there is no version %s of an %s", v, Kind)
	}
	if err := conforms(o); err != nil {
		return nil, err
	}
	b := &builder{object: o, around: around, domain: e.ClusterDomain}
	if b.domain == "" {
		b.domain = DefaultClusterDomain
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Unstructured().Object, &b.app); err != nil {
		return nil, faultAt(o, nil, "", "%w", fmt.Errorf("read the %s: %w", Kind, err))
	}
	return b, nil
}

// all makes the objects of every block.
func (b *builder) all() {
	b.destinationRule()
	b.virtualService()
	b.serviceEntries()
	b.gateway()
	b.sidecar()
	b.workloadEntries()
	b.workloadGroups()
	b.authorizationPolicies()
	b.peerAuthentication()
	b.requestAuthentication()
	b.telemetry()
	b.envoyFilters()
	b.proxyConfig()
	b.wasmPlugins()
	if len(b.objects) == 0 && !b.faults.Any() {
		b.warn(nil, "add a block to its spec", "the %s stands for nothing", Kind)
	}
}
