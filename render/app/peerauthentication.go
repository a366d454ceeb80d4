package app

import (
	"maps"
	"slices"
	"strconv"

	securityv1beta1 "istio.io/api/security/v1beta1"
)

// PeerAuthentication says whether the application takes plain text, mutual TLS, or both. It has mode, ports or both.
type PeerAuthentication struct {
	// Mode for all ports: STRICT takes mutual TLS only, PERMISSIVE also plain text, DISABLE plain text only, UNSET what the namespace or the mesh says.
	// Default: UNSET. Change from DISABLE over PERMISSIVE to STRICT, one commit each, or callers are cut off. Becomes a PeerAuthentication's spec.mtls.mode.
	// +optional
	// +kubebuilder:validation:Enum=UNSET;DISABLE;PERMISSIVE;STRICT
	Mode string `json:"mode,omitempty"`
	// Ports have modes of their own, by the number of the port that the container listens on (the Service's targetPort, not its port), such as "8080": PERMISSIVE.
	// Not together with wholeNamespace. Becomes a PeerAuthentication's spec.portLevelMtls.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Ports map[string]MutualTLSMode `json:"ports,omitempty"`

	Workloads `json:",inline"`
	Escape    `json:",inline"`
}

// MutualTLSMode is what one port takes.
//
// +kubebuilder:validation:Enum=UNSET;DISABLE;PERMISSIVE;STRICT
type MutualTLSMode string

func (b *builder) peerAuthentication() {
	p := b.app.Spec.PeerAuthentication
	if p == nil {
		return
	}
	block := []string{"peerAuthentication"}
	b.rawAlone(p.Escape, p, block)
	if p.Mode == "" && len(p.Ports) == 0 && p.Raw == nil && p.Patch == nil {
		b.fail(block, "write mode: STRICT, or leave the block out", "says nothing: there is neither mode nor ports")
	}
	if p.WholeNamespace && len(p.Ports) > 0 {
		b.fail(below(block, "ports"), "leave wholeNamespace out, or ports", "modes of ports need a selector: Istio refuses them for a whole namespace")
	}
	out := &securityv1beta1.PeerAuthentication{Selector: b.workloads(p.Workloads)}
	if p.Mode != "" {
		out.Mtls = mutualTLS(p.Mode)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Ports)) {
		n, err := strconv.ParseUint(key, 10, 16)
		if err != nil || n == 0 {
			b.fail(below(block, "ports", key), "write the number of the port that the container listens on, 1 to 65535, in quotes", "%q is not a port", key)
			continue
		}
		if out.PortLevelMtls == nil {
			out.PortLevelMtls = map[uint32]*securityv1beta1.PeerAuthentication_MutualTLS{}
		}
		out.PortLevelMtls[uint32(n)] = mutualTLS(string(p.Ports[key]))
	}
	b.emit(peerAuthenticationKind, "", out, p.Escape, block...)
}

func mutualTLS(mode string) *securityv1beta1.PeerAuthentication_MutualTLS {
	return &securityv1beta1.PeerAuthentication_MutualTLS{
		Mode: securityv1beta1.PeerAuthentication_MutualTLS_Mode(securityv1beta1.PeerAuthentication_MutualTLS_Mode_value[mode]),
	}
}
