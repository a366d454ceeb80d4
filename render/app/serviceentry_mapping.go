package app

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (b *builder) serviceEntries() {
	for i, s := range b.app.Spec.ServiceEntries {
		b.serviceEntry(s, []string{"serviceEntries", index(i)})
	}
}

func (b *builder) serviceEntry(s ServiceEntry, block []string) {
	b.rawAlone(s.Escape, s, block, "name")
	if len(s.Hosts) == 0 && s.Raw == nil {
		b.fail(block, "write hosts, such as api.example.com", "has no host")
	}
	if len(s.Selector) > 0 && len(s.Endpoints) > 0 {
		b.fail(below(block, "selector"), "leave one of them out", "selector and endpoints exclude each other")
	}
	out := &networking.ServiceEntry{
		Hosts: s.Hosts, Addresses: s.Addresses, Ports: b.entryPorts(s, block), Location: networking.ServiceEntry_MESH_EXTERNAL,
		SubjectAltNames: s.SubjectAltNames, ExportTo: s.Namespaces,
	}
	if s.Internal {
		out.Location = networking.ServiceEntry_MESH_INTERNAL
	}
	if len(s.Namespaces) == 0 {
		out.ExportTo = []string{"."}
	}
	if len(s.Selector) > 0 {
		out.WorkloadSelector = &networking.WorkloadSelector{Labels: s.Selector}
	}
	for i, e := range s.Endpoints {
		out.Endpoints = append(out.Endpoints, b.endpoint(e, below(block, "endpoints", index(i))))
	}
	out.Resolution = networking.ServiceEntry_Resolution(networking.ServiceEntry_Resolution_value[cmp.Or(s.Resolution, resolution(s, out.Endpoints))])
	b.emit(serviceEntryKind, s.Name, out, s.Escape, block...)
	if s.TLS == "originate" && s.Raw == nil {
		b.originate(s, out, block)
	}
}

// resolution is derived from what is written: wildcards cannot be looked up, and addresses need not be.
func resolution(s ServiceEntry, endpoints []*networking.WorkloadEntry) string {
	if slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.HasPrefix(h, "*") }) {
		return "NONE"
	}
	if len(s.Selector) > 0 {
		return "STATIC"
	}
	named := func(e *networking.WorkloadEntry) bool {
		_, err := netip.ParseAddr(e.Address)
		return err != nil
	}
	if len(endpoints) > 0 && !slices.ContainsFunc(endpoints, named) {
		return "STATIC"
	}
	return "DNS"
}

func (b *builder) entryPorts(s ServiceEntry, block []string) []*networking.ServicePort {
	list := s.Ports
	if len(list) == 0 {
		list = []ServiceEntryPort{{Number: 443}}
		if s.TLS == "originate" {
			list = []ServiceEntryPort{{Number: 80}}
		}
	}
	http := false
	var out []*networking.ServicePort
	for _, p := range list {
		protocol := cmp.Or(strings.ToUpper(p.Protocol), entryProtocol(p.Number, s.TLS))
		target := p.TargetPort
		if s.TLS == "originate" && speaksHTTP(protocol) {
			http, target = true, cmp.Or(target, 443)
		}
		out = append(out, &networking.ServicePort{
			Number: p.Number, Protocol: protocol, TargetPort: target, Name: cmp.Or(p.Name, strings.ToLower(protocol)+"-"+index(int(p.Number))),
		})
	}
	if s.TLS == "originate" && !http {
		b.fail(below(block, "tls"), "add port 80 with protocol HTTP", "there is no HTTP port on which TLS could begin")
	}
	return out
}

func entryProtocol(number uint32, tls string) string {
	switch {
	case number == 443 && tls == "passthrough":
		return "TLS"
	case number == 443:
		return "HTTPS"
	case number == 80:
		return "HTTP"
	}
	return "TCP"
}

func speaksHTTP(protocol string) bool {
	return protocol == "HTTP" || protocol == "HTTP2" || protocol == "GRPC"
}

// originate makes a DestinationRule for each host, with which the proxy speaks TLS to what the application calls by HTTP. The targetPort of the
// ServiceEntry leads to port 443, so that a VirtualService has nothing to do.
func (b *builder) originate(s ServiceEntry, entry *networking.ServiceEntry, block []string) {
	for i, host := range s.Hosts {
		tls := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE, SubjectAltNames: s.SubjectAltNames}
		if strings.HasPrefix(host, "*") {
			b.fail(below(block, "hosts", index(i)), "write the hosts one by one", "TLS cannot begin for a host with a wildcard: its server name is not known")
		} else {
			tls.Sni = host
		}
		if len(tls.SubjectAltNames) == 0 {
			// With a server name of its own and none here, Istio does not look whose certificate it is: any one of a known authority would do.
			tls.SubjectAltNames = []string{host}
		}
		out := &networking.DestinationRule{Host: host, ExportTo: entry.ExportTo, TrafficPolicy: &networking.TrafficPolicy{}}
		for _, p := range entry.Ports {
			if speaksHTTP(p.Protocol) {
				out.TrafficPolicy.PortLevelSettings = append(out.TrafficPolicy.PortLevelSettings,
					&networking.TrafficPolicy_PortTrafficPolicy{Port: &networking.PortSelector{Number: p.Number}, Tls: tls})
			}
		}
		key := s.Name
		if len(s.Hosts) > 1 {
			key += "-" + index(i)
		}
		b.emit(destinationRuleKind, key, out, Escape{}, block...)
	}
}
