package app

import (
	"cmp"
	"maps"

	networking "istio.io/api/networking/v1alpha3"
)

// WorkloadEntry is a machine outside of Kubernetes that serves the application.
type WorkloadEntry struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Address is an IP address, a DNS name or unix:///PATH. Becomes WorkloadEntry spec.address.
	// +optional
	Address string `json:"address,omitempty"`
	// Ports by name of the Service's port. Becomes WorkloadEntry spec.ports.
	// +optional
	Ports map[string]uint32 `json:"ports,omitempty"`
	// Labels of the machine. Default: spec.selector, and version. Becomes WorkloadEntry spec.labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Version that it runs: one of spec.versions, whose labels it gets. Becomes WorkloadEntry spec.labels.
	// +optional
	Version string `json:"version,omitempty"`
	// Locality as region/zone/subzone. Becomes WorkloadEntry spec.locality.
	// +optional
	Locality string `json:"locality,omitempty"`
	// Weight is its share of the traffic. Default: 1, by Istio. Becomes WorkloadEntry spec.weight.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Weight uint32 `json:"weight,omitempty"`
	// Network that it is in. Becomes WorkloadEntry spec.network.
	// +optional
	Network string `json:"network,omitempty"`
	// ServiceAccount that it acts as, in the same namespace. Becomes WorkloadEntry spec.serviceAccount.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`

	Escape `json:",inline"`
}

func (b *builder) workloadEntries() {
	for i, w := range b.app.Spec.WorkloadEntries {
		block := []string{"workloadEntries", index(i)}
		b.rawAlone(w.Escape, w, block, "name")
		if w.Address == "" && w.Network == "" && w.Raw == nil {
			b.fail(block, "write address", "has no address")
		}
		b.emit(workloadEntryKind, w.Name, &networking.WorkloadEntry{
			Address: w.Address, Ports: w.Ports, Labels: b.machineLabels(w, block), Locality: w.Locality, Weight: w.Weight, Network: w.Network,
			ServiceAccount: w.ServiceAccount,
		}, w.Escape, block...)
	}
}

// machineLabels are those that the application's Service and the subset of its version select.
func (b *builder) machineLabels(w WorkloadEntry, block []string) map[string]string {
	out := maps.Clone(w.Labels)
	if len(out) == 0 {
		out = maps.Clone(b.selector())
	}
	if w.Version == "" {
		return out
	}
	v, known := b.app.Spec.Versions[w.Version]
	if !known && len(b.app.Spec.Versions) > 0 {
		b.fail(below(block, "version"), "add it to spec.versions", "there is no version %s", w.Version)
	}
	if len(v.Labels) > 0 {
		maps.Copy(out, v.Labels)
	} else {
		out["version"] = cmp.Or(w.Version, out["version"])
	}
	return out
}
