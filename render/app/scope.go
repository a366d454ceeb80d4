package app

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	typev1beta1 "istio.io/api/type/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Workloads say which pods of the namespace an object is for.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.selector) && has(self.wholeNamespace) && self.wholeNamespace)",message="selector and wholeNamespace exclude each other: leave one of them out"
type Workloads struct {
	// Selector are the labels of the pods. Default: spec.selector. Becomes the selector of the Istio object.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Selector map[string]string `json:"selector,omitempty"`
	// WholeNamespace leaves the selector out, so that the object is for all pods of the namespace, and of the whole mesh if that is the mesh's root
	// namespace, mostly istio-system. Default: false.
	// +optional
	WholeNamespace bool `json:"wholeNamespace,omitempty"`
}

// Scope says what an object is for: pods, or a gateway or waypoint. It holds one of its three attributes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.targetRef) && (has(self.selector) || (has(self.wholeNamespace) && self.wholeNamespace)))",message="targetRef excludes selector and wholeNamespace: leave all but one out"
type Scope struct {
	Workloads `json:",inline"`
	// TargetRef is the Gateway, or the Service or ServiceEntry behind a waypoint, in the same namespace, that the object is for in place of pods.
	// Pods with a sidecar ignore such an object. Becomes spec.targetRefs.
	// +optional
	TargetRef *TargetRef `json:"targetRef,omitempty"`
}

// TargetRef names what an object is attached to.
type TargetRef struct {
	// Kind is Gateway or GatewayClass of the Kubernetes Gateway API, Service, or Istio's ServiceEntry. Becomes spec.targetRefs[].kind and group.
	// +required
	// +kubebuilder:validation:Enum=Gateway;GatewayClass;Service;ServiceEntry
	Kind string `json:"kind"`
	// Name of the object. Becomes spec.targetRefs[].name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// below gives the path of a field of a block. The block's path is not changed.
func below(block []string, more ...string) []string {
	return append(slices.Clone(block), more...)
}

// labelsFor are those of the pods that an object is for; nil means all.
func (b *builder) labelsFor(w Workloads) map[string]string {
	if w.WholeNamespace {
		return nil
	}
	if len(w.Selector) > 0 {
		return w.Selector
	}
	return b.selector()
}

// workloads gives the selector of a security, telemetry or extension kind.
func (b *builder) workloads(w Workloads) *typev1beta1.WorkloadSelector {
	if labels := b.labelsFor(w); labels != nil {
		return &typev1beta1.WorkloadSelector{MatchLabels: labels}
	}
	return nil
}

// scope gives the selector or the target of a kind that has both; Istio refuses objects with two of them.
func (b *builder) scope(s Scope) (*typev1beta1.WorkloadSelector, []*typev1beta1.PolicyTargetReference) {
	if s.TargetRef == nil {
		return b.workloads(s.Workloads), nil
	}
	groups := map[string]string{
		"Gateway": "gateway.networking.k8s.io", "GatewayClass": "gateway.networking.k8s.io", "ServiceEntry": "networking.istio.io",
	}
	return nil, []*typev1beta1.PolicyTargetReference{{Group: groups[s.TargetRef.Kind], Kind: s.TargetRef.Kind, Name: s.TargetRef.Name}}
}

// rawAlone sees to it that nothing but the named attributes stands beside raw: it would be ignored, and its author would not know.
func (b *builder) rawAlone(esc Escape, attributes any, block []string, may ...string) {
	if esc.Raw == nil {
		return
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		b.faults.Add(err)
		return
	}
	var set map[string]json.RawMessage
	if err := json.Unmarshal(text, &set); err != nil {
		b.faults.Add(err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name != "raw" && name != "patch" && !slices.Contains(may, name) {
			b.fail(below(block, name), "write it into raw, or leave raw out and use patch for what has no attribute",
				"is ignored beside raw, which is the whole spec")
		}
	}
}

// ports writes workload ports as Istio's policies want them.
func (b *builder) ports(list []intstr.IntOrString, block []string) []string {
	var out []string
	for i, p := range list {
		n, err := strconv.ParseUint(p.String(), 10, 16)
		if err != nil || n == 0 {
			b.fail(below(block, index(i)), "write the number of the port that the container listens on, 1 to 65535", "%q is not a port", p.String())
			continue
		}
		out = append(out, strconv.FormatUint(n, 10))
	}
	return out
}

// tcpPort finds a port of the application's Service that says that it is not HTTP; "" when there is none or nobody knows.
func (b *builder) tcpPort() string {
	s := b.around.service(b.app.Namespace, b.app.Name)
	if s == nil {
		return ""
	}
	for _, p := range s.ports {
		protocol := strings.ToLower(p.appProtocol)
		if protocol == "" {
			protocol, _, _ = strings.Cut(strings.ToLower(p.name), "-")
		}
		switch protocol {
		case "tcp", "tls", "https", "mongo", "mysql", "redis":
			return strings.TrimSpace(strconv.Itoa(int(p.number)) + " " + p.name)
		}
	}
	return ""
}
