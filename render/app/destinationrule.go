package app

import (
	"cmp"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	typev1beta1 "istio.io/api/type/v1beta1"
)

// DestinationRule says how callers treat a host's endpoints.
type DestinationRule struct {
	// Host whose callers follow the rule. Default: the application's Service. Becomes DestinationRule spec.host.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
	// Subsets are named parts of the endpoints, beside those of spec.versions. Becomes DestinationRule spec.subsets.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Subsets []Subset `json:"subsets,omitempty"`
	// Namespaces that see the rule: "." its own, "*" all. Default: all. Becomes DestinationRule spec.exportTo.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// WorkloadSelector are the labels of the callers that follow the rule, in the same namespace. Default: all callers.
	// Becomes DestinationRule spec.workloadSelector.matchLabels.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	WorkloadSelector map[string]string `json:"workloadSelector,omitempty"`
	// TrafficPolicy is for all endpoints whose subset has none of its own. Becomes DestinationRule spec.trafficPolicy.
	// +optional
	TrafficPolicy *TrafficPolicy `json:"trafficPolicy,omitempty"`

	Escape `json:",inline"`
}

// Subset is a named part of a host's endpoints.
type Subset struct {
	// Name by which routes know it. Becomes DestinationRule spec.subsets[].name.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Labels of its pods. Becomes DestinationRule spec.subsets[].labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// TrafficPolicy of the subset; what it has replaces what the rule's own has. Becomes DestinationRule spec.subsets[].trafficPolicy.
	// +optional
	TrafficPolicy *TrafficPolicy `json:"trafficPolicy,omitempty"`
}

// AppVersion is one of several versions of an application that run side by side.
type AppVersion struct {
	// Labels of the version's pods. Default: version: NAME. Becomes DestinationRule spec.subsets[].labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// TrafficPolicy of the version; what it has replaces what destinationRule.trafficPolicy has. Becomes DestinationRule spec.subsets[].trafficPolicy.
	// +optional
	TrafficPolicy *TrafficPolicy `json:"trafficPolicy,omitempty"`
}

func (b *builder) destinationRule() {
	d := b.app.Spec.DestinationRule
	block := []string{"destinationRule"}
	if d == nil {
		if len(b.app.Spec.Versions) == 0 {
			return
		}
		d, block = &DestinationRule{}, []string{"versions"}
	}
	b.rawAlone(d.Escape, d, block)
	out := &networking.DestinationRule{
		Host:          b.host(d.Host),
		ExportTo:      d.Namespaces,
		TrafficPolicy: b.trafficPolicy(d.TrafficPolicy, below(block, "trafficPolicy")),
		Subsets:       b.subsets(d),
	}
	if len(d.WorkloadSelector) > 0 {
		out.WorkloadSelector = &typev1beta1.WorkloadSelector{MatchLabels: d.WorkloadSelector}
	}
	b.sees(d.Namespaces, below(block, "namespaces"))
	b.emit(destinationRuleKind, "", out, d.Escape, block...)
}

// subsets are those of the versions and of the rule, sorted by name. Versions are those of the application's own Service alone.
func (b *builder) subsets(d *DestinationRule) []*networking.Subset {
	var out []*networking.Subset
	if d.Host != "" && b.host(d.Host) != b.host("") && len(b.app.Spec.Versions) > 0 {
		b.fail([]string{"destinationRule", "host"}, "leave host out, or write subsets in place of spec.versions",
			"the versions are those of %s, and the rule is for %s", b.host(""), b.host(d.Host))
	}
	for name, v := range b.app.Spec.Versions {
		labels := v.Labels
		if len(labels) == 0 {
			labels = map[string]string{"version": name}
		}
		policy := b.trafficPolicy(v.TrafficPolicy, []string{"versions", name, "trafficPolicy"})
		out = append(out, &networking.Subset{Name: name, Labels: labels, TrafficPolicy: policy})
	}
	for i, s := range d.Subsets {
		path := []string{"destinationRule", "subsets", index(i)}
		if _, twice := b.app.Spec.Versions[s.Name]; twice {
			b.fail(below(path, "name"), "write it in one of the two places", "%s is a version as well", s.Name)
		}
		policy := b.trafficPolicy(s.TrafficPolicy, below(path, "trafficPolicy"))
		out = append(out, &networking.Subset{Name: s.Name, Labels: s.Labels, TrafficPolicy: policy})
	}
	slices.SortFunc(out, func(x, y *networking.Subset) int { return cmp.Compare(x.Name, y.Name) })
	return out
}

// sees warns when an object is hidden from its own namespace, where the callers that its author tries it with mostly are.
func (b *builder) sees(namespaces, path []string) {
	if len(namespaces) == 0 || slices.Contains(namespaces, "*") || slices.Contains(namespaces, ".") ||
		slices.Contains(namespaces, b.app.Namespace) {
		return
	}
	b.warn(path, `add "." unless that is meant`, "its own namespace is not among them, so callers there do not follow it")
}

// knowsVersion says whether the application's own rule has a subset of that name. Raw and patch may add any.
func (b *builder) knowsVersion(name string) bool {
	if _, ok := b.app.Spec.Versions[name]; ok {
		return true
	}
	d := b.app.Spec.DestinationRule
	return d != nil && (d.Raw != nil || d.Patch != nil ||
		slices.ContainsFunc(d.Subsets, func(s Subset) bool { return s.Name == name }))
}

// versionNames are what a route may name, sorted.
func (b *builder) versionNames() []string {
	names := slices.Collect(maps.Keys(b.app.Spec.Versions))
	if d := b.app.Spec.DestinationRule; d != nil {
		for _, s := range d.Subsets {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
