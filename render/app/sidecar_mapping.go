package app

import (
	"cmp"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (b *builder) sidecar() {
	s := b.app.Spec.Sidecar
	if s == nil {
		return
	}
	block := []string{"sidecar"}
	b.rawAlone(s.Escape, s, block)
	out := &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: b.reach(s)}}}
	if labels := b.labelsFor(s.Workloads); labels != nil {
		out.WorkloadSelector = &networking.WorkloadSelector{Labels: labels}
	}
	if s.OutboundPolicy != "" {
		out.OutboundTrafficPolicy = &networking.OutboundTrafficPolicy{
			Mode: networking.OutboundTrafficPolicy_Mode(networking.OutboundTrafficPolicy_Mode_value[s.OutboundPolicy]),
		}
	}
	if s.WholeNamespace && len(s.Ingress) > 0 && s.Raw == nil {
		b.fail(below(block, "ingress"), "leave wholeNamespace out", "is for some pods, not for a whole namespace")
	}
	for _, l := range s.Ingress {
		protocol := cmp.Or(l.Protocol, "HTTP")
		out.Ingress = append(out.Ingress, &networking.IstioIngressListener{
			Port:            &networking.SidecarPort{Number: l.Port, Protocol: protocol, Name: strings.ToLower(protocol) + "-" + index(int(l.Port))},
			DefaultEndpoint: cmp.Or(l.DefaultEndpoint, "0.0.0.0:"+index(int(l.Port))),
			Bind:            l.Bind,
			CaptureMode:     networking.CaptureMode(networking.CaptureMode_value[l.CaptureMode]),
		})
	}
	b.emit(sidecarKind, "", out, s.Escape, block...)
}

// reach is what the proxies know: what is written, or what the blocks of the application call. Dependencies come in both cases.
func (b *builder) reach(s *Sidecar) []string {
	out := slices.Clone(s.Egress)
	if len(out) == 0 {
		out = append(out, b.called()...)
	}
	for _, d := range s.Dependencies {
		out = append(out, b.known(d))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// called are the hosts that the application's own blocks name.
func (b *builder) called() []string {
	out := []string{"istio-system/*", b.known("")}
	if v := b.app.Spec.VirtualService; v != nil {
		var to []Destination
		for _, r := range v.Routes {
			to = append(to, r.To...)
			if r.Mirror != nil {
				to = append(to, Destination{Host: r.Mirror.To.Host})
			}
		}
		for _, r := range v.TLS {
			to = append(to, r.To...)
		}
		for _, r := range v.TCP {
			to = append(to, r.To...)
		}
		for _, d := range to {
			out = append(out, b.known(d.Host))
		}
	}
	for _, e := range b.app.Spec.ServiceEntries {
		for _, h := range e.Hosts {
			out = append(out, "./"+h)
		}
	}
	return out
}

// known writes a host as a Sidecar wants it: with the namespace whose configuration it is.
func (b *builder) known(host string) string {
	if namespace, name, ok := strings.Cut(host, "/"); ok {
		if strings.Contains(name, ".") || strings.HasPrefix(name, "*") || namespace == "*" || namespace == "." {
			return host
		}
		return namespace + "/" + name + "." + namespace + ".svc." + b.domain
	}
	if name, namespace, ok := strings.Cut(host, "."); ok && !strings.Contains(namespace, ".") && b.around.service(namespace, name) != nil {
		return namespace + "/" + name + "." + namespace + ".svc." + b.domain
	}
	full := b.host(host)
	parts := strings.Split(strings.TrimSuffix(full, ".svc."+b.domain), ".")
	switch {
	case strings.HasSuffix(full, ".svc."+b.domain) && len(parts) == 2 && parts[1] != b.app.Namespace:
		return parts[1] + "/" + full
	case strings.HasSuffix(full, ".svc."+b.domain):
		return "./" + full
	}
	return "*/" + full
}
