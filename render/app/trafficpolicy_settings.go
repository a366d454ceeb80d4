package app

import (
	"cmp"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

// The defaults that the model promises where a block is written. Istio's own are others, or none, so they are written out.
const (
	defaultPending        = 1024
	defaultActive         = 1024
	defaultErrors         = 5
	defaultInterval       = Duration("10s")
	defaultEjectionTime   = Duration("30s")
	defaultConnectTimeout = Duration("10s")
)

func (b *builder) trafficPolicy(p *TrafficPolicy, path []string) *networking.TrafficPolicy {
	if p == nil {
		return nil
	}
	common := b.settings(p.PolicySettings, path)
	out := &networking.TrafficPolicy{
		LoadBalancer: common.LoadBalancer, Tls: common.Tls, OutlierDetection: common.OutlierDetection, ConnectionPool: common.ConnectionPool,
	}
	for i, port := range p.Ports {
		one := b.settings(port.PolicySettings, below(path, "ports", index(i)))
		one.Port = &networking.PortSelector{Number: port.Port}
		out.PortLevelSettings = append(out.PortLevelSettings, one)
	}
	if p.PolicySettings == (PolicySettings{}) && len(p.Ports) == 0 {
		b.fail(path, "write loadBalancerSettings, tlsSettings, ejectionSettings or connectionPoolSettings, or leave it out", "says nothing")
	}
	return out
}

// settings has the shape of a port's, which holds all that a policy without ports does.
func (b *builder) settings(s PolicySettings, path []string) *networking.TrafficPolicy_PortTrafficPolicy {
	return &networking.TrafficPolicy_PortTrafficPolicy{
		LoadBalancer:     b.loadBalancer(s, below(path, "loadBalancerSettings")),
		Tls:              b.clientTLS(s.TLSSettings, below(path, "tlsSettings")),
		OutlierDetection: b.ejection(s.EjectionSettings, below(path, "ejectionSettings")),
		ConnectionPool:   b.connectionPool(s.ConnectionPoolSettings, below(path, "connectionPoolSettings")),
	}
}

func (b *builder) loadBalancer(s PolicySettings, path []string) *networking.LoadBalancerSettings {
	l := s.LoadBalancerSettings
	if l == nil {
		return nil
	}
	out := &networking.LoadBalancerSettings{LocalityLbSetting: b.locality(l.Locality, s.EjectionSettings, below(path, "locality"))}
	if w := l.Warmup; w != nil {
		out.Warmup = &networking.WarmupConfiguration{Duration: b.duration(w.Duration, below(path, "warmup", "duration"))}
		if w.MinimumPercent != nil {
			out.Warmup.MinimumPercent = wrapperspb.Double(float64(*w.MinimumPercent))
		}
		if w.Aggression != nil {
			out.Warmup.Aggression = wrapperspb.Double(float64(*w.Aggression))
		}
	}
	switch {
	case l.ConsistentHash != nil:
		out.LbPolicy = &networking.LoadBalancerSettings_ConsistentHash{ConsistentHash: b.consistentHash(l.ConsistentHash, below(path, "consistentHash"))}
	case l.Strategy != "":
		strategy := l.Strategy
		if strategy == "LEAST_CONN" {
			strategy = "LEAST_REQUEST"
			b.warn(below(path, "strategy"), "write LEAST_REQUEST", "LEAST_CONN is an old name and becomes LEAST_REQUEST")
		}
		simple := networking.LoadBalancerSettings_SimpleLB(networking.LoadBalancerSettings_SimpleLB_value[strategy])
		out.LbPolicy = &networking.LoadBalancerSettings_Simple{Simple: simple}
	}
	return out
}

func (b *builder) consistentHash(c *ConsistentHash, path []string) *networking.LoadBalancerSettings_ConsistentHashLB {
	out := &networking.LoadBalancerSettings_ConsistentHashLB{}
	switch {
	case c.HTTPHeaderName != "":
		out.HashKey = &networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName{HttpHeaderName: c.HTTPHeaderName}
	case c.HTTPCookie != nil:
		ttl := b.duration(cmp.Or(c.HTTPCookie.TTL, "0s"), below(path, "httpCookie", "ttl"))
		cookie := &networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie{Name: c.HTTPCookie.Name, Path: c.HTTPCookie.Path, Ttl: ttl}
		out.HashKey = &networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie{HttpCookie: cookie}
	case c.HTTPQueryParameterName != "":
		out.HashKey = &networking.LoadBalancerSettings_ConsistentHashLB_HttpQueryParameterName{HttpQueryParameterName: c.HTTPQueryParameterName}
	default:
		out.HashKey = &networking.LoadBalancerSettings_ConsistentHashLB_UseSourceIp{UseSourceIp: c.UseSourceIP}
	}
	switch {
	case c.RingHash != nil:
		size := uint64(max(c.RingHash.MinimumRingSize, 0))
		out.HashAlgorithm = &networking.LoadBalancerSettings_ConsistentHashLB_RingHash_{
			RingHash: &networking.LoadBalancerSettings_ConsistentHashLB_RingHash{MinimumRingSize: size},
		}
	case c.Maglev != nil:
		size := uint64(max(c.Maglev.TableSize, 0))
		out.HashAlgorithm = &networking.LoadBalancerSettings_ConsistentHashLB_Maglev{
			Maglev: &networking.LoadBalancerSettings_ConsistentHashLB_MagLev{TableSize: size},
		}
	}
	return out
}

func (b *builder) locality(l *Locality, ejection *EjectionSettings, path []string) *networking.LocalityLoadBalancerSetting {
	if l == nil {
		return nil
	}
	out := &networking.LocalityLoadBalancerSetting{FailoverPriority: l.FailoverPriority}
	if l.Enabled != nil {
		out.Enabled = wrapperspb.Bool(*l.Enabled)
	}
	for _, f := range l.Failover {
		out.Failover = append(out.Failover, &networking.LocalityLoadBalancerSetting_Failover{From: f.From, To: f.To})
	}
	for _, d := range l.Distribute {
		out.Distribute = append(out.Distribute, &networking.LocalityLoadBalancerSetting_Distribute{From: d.From, To: d.To})
	}
	if ejection == nil && len(l.Failover)+len(l.FailoverPriority) > 0 {
		b.warn(path, "write ejectionSettings beside loadBalancerSettings", "Istio does not fail over without ejectionSettings")
	}
	return out
}

func (b *builder) clientTLS(t *TLSSettings, path []string) *networking.ClientTLSSettings {
	if t == nil {
		return nil
	}
	paths := t.ClientCertificate != "" || t.ClientPrivateKey != ""
	switch {
	case t.Mode == "MUTUAL" && t.CredentialName == "" && (t.ClientCertificate == "" || t.ClientPrivateKey == ""):
		b.fail(path, "write credentialName, or clientCertificate and clientPrivateKey", "MUTUAL needs a certificate of one's own")
	case t.Mode != "MUTUAL" && paths:
		b.fail(path, "write mode: MUTUAL, or leave them out", "clientCertificate and clientPrivateKey are for MUTUAL alone")
	case t.CredentialName != "" && (paths || t.CACertificates != ""):
		b.fail(below(path, "credentialName"), "leave one of the two out", "credentialName stands in place of paths")
	}
	if (t.Mode == "SIMPLE" || t.Mode == "MUTUAL") && t.SNI != "" && len(t.SubjectAltNames) == 0 && (t.InsecureSkipVerify == nil || !*t.InsecureSkipVerify) {
		b.warn(below(path, "sni"), "write subjectAltNames: ["+t.SNI+"]",
			"with a server name of its own and no subjectAltNames, Istio takes the certificate of anybody whom a known authority has given one")
	}
	out := &networking.ClientTLSSettings{
		Mode:              networking.ClientTLSSettings_TLSmode(networking.ClientTLSSettings_TLSmode_value[t.Mode]),
		ClientCertificate: t.ClientCertificate, PrivateKey: t.ClientPrivateKey, CaCertificates: t.CACertificates,
		CredentialName: t.CredentialName, Sni: t.SNI, SubjectAltNames: t.SubjectAltNames,
	}
	if t.InsecureSkipVerify != nil {
		out.InsecureSkipVerify = wrapperspb.Bool(*t.InsecureSkipVerify)
	}
	return out
}

func (b *builder) ejection(e *EjectionSettings, path []string) *networking.OutlierDetection {
	if e == nil {
		return nil
	}
	out := &networking.OutlierDetection{
		Consecutive_5XxErrors:          wrapperspb.UInt32(defaultErrors),
		Interval:                       b.duration(cmp.Or(e.Interval, defaultInterval), below(path, "interval")),
		BaseEjectionTime:               b.duration(cmp.Or(e.MinimumEjectionTime, defaultEjectionTime), below(path, "minimumEjectionTime")),
		MaxEjectionPercent:             e.MaxEjectionPercent,
		MinHealthPercent:               e.MinHealthPercent,
		SplitExternalLocalOriginErrors: e.SplitLocalOriginErrors,
	}
	if e.ConsecutiveErrors != nil {
		out.Consecutive_5XxErrors = wrapperspb.UInt32(*e.ConsecutiveErrors)
	}
	if e.ConsecutiveGatewayErrors != nil {
		out.ConsecutiveGatewayErrors = wrapperspb.UInt32(*e.ConsecutiveGatewayErrors)
	}
	if e.ConsecutiveLocalOriginFailures != nil {
		out.ConsecutiveLocalOriginFailures = wrapperspb.UInt32(*e.ConsecutiveLocalOriginFailures)
		if !e.SplitLocalOriginErrors {
			b.fail(below(path, "consecutiveLocalOriginFailures"), "write splitLocalOriginErrors: true", "has no effect without splitLocalOriginErrors")
		}
	}
	return out
}

func (b *builder) connectionPool(c *ConnectionPoolSettings, path []string) *networking.ConnectionPoolSettings {
	if c == nil {
		return nil
	}
	if c.TCPSettings == nil && c.HTTPSettings == nil {
		b.fail(path, "write tcpSettings or httpSettings, or leave it out", "says nothing")
	}
	out := &networking.ConnectionPoolSettings{}
	if t := c.TCPSettings; t != nil {
		out.Tcp = b.tcpPool(t, below(path, "tcpSettings"))
	}
	if h := c.HTTPSettings; h != nil {
		out.Http = &networking.ConnectionPoolSettings_HTTPSettings{
			Http1MaxPendingRequests:  cmp.Or(h.MaxPendingHTTPConnections, defaultPending),
			Http2MaxRequests:         cmp.Or(h.MaxActiveHTTPConnections, defaultActive),
			MaxRequestsPerConnection: h.MaxHTTPRequestsPerConnection,
			MaxRetries:               h.MaxRetries,
			IdleTimeout:              b.duration(h.IdleTimeout, below(path, "httpSettings", "idleTimeout")),
			UseClientProtocol:        h.UseClientProtocol,
			H2UpgradePolicy: networking.ConnectionPoolSettings_HTTPSettings_H2UpgradePolicy(
				networking.ConnectionPoolSettings_HTTPSettings_H2UpgradePolicy_value[h.H2UpgradePolicy]),
		}
	}
	return out
}

func (b *builder) tcpPool(t *TCPSettings, path []string) *networking.ConnectionPoolSettings_TCPSettings {
	span := func(d Duration, field ...string) *durationpb.Duration { return b.duration(d, below(path, field...)) }
	out := &networking.ConnectionPoolSettings_TCPSettings{
		MaxConnections:        t.MaxTCPConnections,
		ConnectTimeout:        span(cmp.Or(t.ConnectionTimeout, defaultConnectTimeout), "connectionTimeout"),
		MaxConnectionDuration: span(t.MaxConnectionDuration, "maxConnectionDuration"),
		IdleTimeout:           span(t.IdleTimeout, "idleTimeout"),
	}
	if k := t.Keepalive; k != nil {
		out.TcpKeepalive = &networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{
			Probes: k.Probes, Time: span(k.Time, "keepalive", "time"), Interval: span(k.Interval, "keepalive", "interval"),
		}
	}
	return out
}
