package app

import (
	networking "istio.io/api/networking/v1alpha3"
)

// Gateway lets traffic in from outside of the mesh.
type Gateway struct {
	// Selector are the labels of the gateway's pods; never empty, which would be all gateways. Default: istio: ingressgateway. Becomes Gateway spec.selector.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Selector map[string]string `json:"selector,omitempty"`
	// Listeners are the ports that it opens. Needed unless there is raw. Becomes Gateway spec.servers.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Listeners []Listener `json:"listeners,omitempty"`

	Escape `json:",inline"`
}

// Listener is a port for some hosts.
type Listener struct {
	// Name tells it from the others. Becomes Gateway spec.servers[].port.name.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Hosts that are let in, such as shop.example.com, *.example.com or NAMESPACE/HOST. Becomes Gateway spec.servers[].hosts.
	// +required
	// +kubebuilder:validation:MinItems=1
	Hosts []string `json:"hosts"`
	// Port that is opened. Default: 443 with tls, else 80. Becomes Gateway spec.servers[].port.number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Protocol on the port. Default: HTTP; with tls HTTPS, or TLS where that is passed through. Becomes Gateway spec.servers[].port.protocol.
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS;GRPC;HTTP2;MONGO;TCP;TLS
	Protocol string `json:"protocol,omitempty"`
	// TLS of the port. Default: plain text. Becomes Gateway spec.servers[].tls.
	// +optional
	TLS *ListenerTLS `json:"tls,omitempty"`
	// RedirectHTTP answers the same hosts on port 80 with a redirect to HTTPS. Default: false. Becomes a second Gateway spec.servers[] with tls.httpsRedirect.
	// +optional
	RedirectHTTP bool `json:"redirectHttp,omitempty"`
}

// ListenerTLS says how TLS is ended or passed on.
type ListenerTLS struct {
	// Secret with certificate and key, in the namespace of the gateway's pods. Becomes Gateway spec.servers[].tls.credentialName.
	// +optional
	Secret string `json:"secret,omitempty"`
	// Mode is SIMPLE, MUTUAL (callers need a certificate), OPTIONAL_MUTUAL (they may have one), PASSTHROUGH, AUTO_PASSTHROUGH or ISTIO_MUTUAL.
	// Default: SIMPLE. Becomes Gateway spec.servers[].tls.mode.
	// +optional
	// +kubebuilder:validation:Enum=SIMPLE;MUTUAL;OPTIONAL_MUTUAL;PASSTHROUGH;AUTO_PASSTHROUGH;ISTIO_MUTUAL
	Mode string `json:"mode,omitempty"`
	// MinVersion of TLS. Default: TLSV1_2, by Istio. Becomes Gateway spec.servers[].tls.minProtocolVersion.
	// +optional
	// +kubebuilder:validation:Enum=TLSV1_0;TLSV1_1;TLSV1_2;TLSV1_3
	MinVersion string `json:"minVersion,omitempty"`
	// MaxVersion of TLS. Default: TLSV1_3, by Istio. Becomes Gateway spec.servers[].tls.maxProtocolVersion.
	// +optional
	// +kubebuilder:validation:Enum=TLSV1_0;TLSV1_1;TLSV1_2;TLSV1_3
	MaxVersion string `json:"maxVersion,omitempty"`
	// CASecret has the authorities of the callers' certificates, in the namespace of the gateway's pods. Default: ca.crt in the secret, by Istio.
	// Becomes Gateway spec.servers[].tls.caCertCredentialName.
	// +optional
	CASecret string `json:"caSecret,omitempty"`
	// SubjectAltNames of which a caller's certificate has to have one. Becomes Gateway spec.servers[].tls.subjectAltNames.
	// +optional
	SubjectAltNames []string `json:"subjectAltNames,omitempty"`
	// CipherSuites that are allowed. Default: Envoy's. Becomes Gateway spec.servers[].tls.cipherSuites.
	// +optional
	CipherSuites []string `json:"cipherSuites,omitempty"`
}

func (b *builder) gateway() {
	g := b.app.Spec.Gateway
	if g == nil {
		return
	}
	block := []string{"gateway"}
	b.rawAlone(g.Escape, g, block)
	if len(g.Listeners) == 0 && g.Raw == nil {
		b.fail(block, "write listeners with a name and hosts", "opens no port")
	}
	out := &networking.Gateway{Selector: g.Selector}
	if len(g.Selector) == 0 {
		out.Selector = map[string]string{"istio": "ingressgateway"}
	}
	for i, l := range g.Listeners {
		out.Servers = append(out.Servers, b.servers(l, below(block, "listeners", index(i)))...)
	}
	b.emit(gatewayKind, "", out, g.Escape, block...)
}

// servers of a listener: itself, and the redirect to it.
func (b *builder) servers(l Listener, path []string) []*networking.Server {
	number, protocol := uint32(80), "HTTP"
	passed := l.TLS != nil && (l.TLS.Mode == "PASSTHROUGH" || l.TLS.Mode == "AUTO_PASSTHROUGH")
	if l.TLS != nil {
		number, protocol = 443, "HTTPS"
	}
	if passed {
		protocol = "TLS"
	}
	if l.Port != 0 {
		number = l.Port
	}
	if l.Protocol != "" {
		protocol = l.Protocol
	}
	if l.TLS == nil && (protocol == "HTTPS" || protocol == "TLS") {
		b.fail(below(path, "protocol"), "write tls with a secret, or with mode: PASSTHROUGH", "%s needs tls", protocol)
	}
	if l.TLS != nil && !passed && l.TLS.Mode != "ISTIO_MUTUAL" && l.TLS.Secret == "" {
		b.fail(below(path, "tls"), "write secret, the name of a Secret beside the gateway's pods", "there is no certificate to show")
	}
	out := []*networking.Server{{
		Hosts: l.Hosts, Tls: listenerTLS(l.TLS), // a name would become part of Envoy's names of metrics
		Port: &networking.Port{Number: number, Protocol: protocol, Name: l.Name},
	}}
	if !l.RedirectHTTP {
		return out
	}
	if l.TLS == nil || number == 80 {
		b.fail(below(path, "redirectHttp"), "write tls, and another port than 80", "there is no HTTPS to redirect to")
	}
	name := objectName(l.Name, "redirect")
	return append(out, &networking.Server{
		Hosts: l.Hosts, Tls: &networking.ServerTLSSettings{HttpsRedirect: true},
		Port: &networking.Port{Number: 80, Protocol: "HTTP", Name: name},
	})
}

func listenerTLS(t *ListenerTLS) *networking.ServerTLSSettings {
	if t == nil {
		return nil
	}
	mode := t.Mode
	if mode == "" {
		mode = "SIMPLE"
	}
	return &networking.ServerTLSSettings{
		Mode:                 networking.ServerTLSSettings_TLSmode(networking.ServerTLSSettings_TLSmode_value[mode]),
		CredentialName:       t.Secret,
		CaCertCredentialName: t.CASecret,
		MinProtocolVersion:   networking.ServerTLSSettings_TLSProtocol(networking.ServerTLSSettings_TLSProtocol_value[t.MinVersion]),
		MaxProtocolVersion:   networking.ServerTLSSettings_TLSProtocol(networking.ServerTLSSettings_TLSProtocol_value[t.MaxVersion]),
		SubjectAltNames:      t.SubjectAltNames,
		CipherSuites:         t.CipherSuites,
	}
}
