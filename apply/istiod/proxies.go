package istiod

import (
	"cmp"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
)

// proxy is one connection of a proxy to an istiod: what it was sent last and acknowledged last, by kind of resources.
type proxy struct {
	id, cluster, kind string
	answers           map[string]answer
}

// answer is what became of the last response of one kind.
type answer struct {
	sent, acked string // nonces
	said        string // why the proxy refused it
}

func (a answer) due() bool { return a.sent != a.acked }

// kinds are the resources that say where traffic goes and what may pass, by the short names that people know, in the order in which istiod
// sends them. Names (NDS), secrets and the agent's own questions say nothing about routes, and are left out.
var kinds = []struct{ name, url string }{
	{"CDS", "type.googleapis.com/envoy.config.cluster.v3.Cluster"},
	{"EDS", "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"},
	{"LDS", "type.googleapis.com/envoy.config.listener.v3.Listener"},
	{"RDS", "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"},
	{"ECDS", "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"},
	// What a ztunnel is told.
	{"WDS", "type.googleapis.com/istio.workload.Address"},
	{"WADS", "type.googleapis.com/istio.security.Authorization"},
}

// status is an element of /debug/syncz.
type status struct {
	ClusterID string `json:"cluster_id"`
	Proxy     string `json:"proxy"`
	Type      string `json:"proxy_type"`
	Resources map[string]struct {
		Sent      string `json:"sent"`
		Acked     string `json:"acked"`
		LastError string `json:"lastError"`
	} `json:"resources"`
	// What an istiod says that does not say resources yet.
	ClusterSent   string `json:"cluster_sent"`
	ClusterAcked  string `json:"cluster_acked"`
	ListenerSent  string `json:"listener_sent"`
	ListenerAcked string `json:"listener_acked"`
	RouteSent     string `json:"route_sent"`
	RouteAcked    string `json:"route_acked"`
	EndpointSent  string `json:"endpoint_sent"`
	EndpointAcked string `json:"endpoint_acked"`
	ECDSSent      string `json:"extensionconfig_sent"`
	ECDSAcked     string `json:"extensionconfig_acked"`
}

func (s status) proxy() proxy {
	p := proxy{id: s.Proxy, cluster: s.ClusterID, kind: s.Type, answers: map[string]answer{
		"CDS":  {sent: s.ClusterSent, acked: s.ClusterAcked},
		"LDS":  {sent: s.ListenerSent, acked: s.ListenerAcked},
		"RDS":  {sent: s.RouteSent, acked: s.RouteAcked},
		"EDS":  {sent: s.EndpointSent, acked: s.EndpointAcked},
		"ECDS": {sent: s.ECDSSent, acked: s.ECDSAcked},
	}}
	for _, k := range kinds {
		if r, ok := s.Resources[k.url]; ok {
			p.answers[k.name] = answer{sent: r.Sent, acked: r.Acked, said: r.LastError}
		}
	}
	return p
}

// readProxies reads the answer of /debug/syncz.
func readProxies(r io.Reader) ([]proxy, error) {
	var all []proxy
	err := each(r, func(s status) { all = append(all, s.proxy()) })
	return all, err
}

// each decodes a JSON array element by element, so that an answer of many megabytes is never held whole. An istiod that has nothing
// to say says nothing at all, or null.
func each[T any](r io.Reader, visit func(T)) error {
	d := json.NewDecoder(r)
	token, err := d.Token()
	if errors.Is(err, io.EOF) || err == nil && token == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if token != json.Delim('[') {
		return errors.New("not a list")
	}
	for d.More() {
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		visit(element)
	}
	_, err = d.Token()
	return err
}

// late is what the proxy owes an answer to, by the kinds' order.
func (p proxy) late() (Late, bool) {
	l := Late{Proxy: p.id, Type: p.kind, Cluster: p.cluster}
	for _, k := range kinds {
		if a := p.answers[k.name]; a.due() {
			l.Kinds = append(l.Kinds, k.name)
			l.Said = cmp.Or(l.Said, a.said)
		}
	}
	return l, len(l.Kinds) > 0
}

func lateOf(proxies []proxy) []Late {
	var all []Late
	for _, p := range proxies {
		if l, late := p.late(); late {
			all = append(all, l)
		}
	}
	return sortLate(all)
}

// sortLate puts those who said why first: a person can do something about them.
func sortLate(all []Late) []Late {
	slices.SortFunc(all, func(x, y Late) int {
		return cmp.Or(cmp.Compare(silent(x), silent(y)), cmp.Compare(x.Proxy, y.Proxy), cmp.Compare(x.Cluster, y.Cluster), slices.Compare(x.Kinds, y.Kinds))
	})
	// A proxy that has just come back has two connections for a while.
	return slices.CompactFunc(all, func(x, y Late) bool { return x.Proxy == y.Proxy && x.Cluster == y.Cluster })
}

func silent(l Late) int {
	if l.Said != "" {
		return 0
	}
	return 1
}

// fingerprint is the same for two answers in which no proxy was sent or acknowledged anything in between. The order of connections
// of one proxy is not defined, so sums are made.
func fingerprint(proxies []proxy) uint64 {
	var sum uint64
	for _, p := range proxies {
		for _, k := range kinds {
			h := fnv.New64a()
			a := p.answers[k.name]
			for _, s := range []string{p.cluster, p.id, k.name, a.sent, a.acked} {
				_, _ = io.WriteString(h, s+"\x00") // a hash takes everything
			}
			sum += h.Sum64()
		}
	}
	return sum
}

// pushOf is the number of the push that a nonce belongs to: a nonce is TIME/NUMBER and a UUID, which may begin with a digit.
func pushOf(nonce string) (uint64, bool) {
	const uuid = 36
	_, rest, ok := strings.Cut(nonce, "/")
	if !ok || len(rest) <= uuid {
		return 0, false
	}
	n, err := strconv.ParseUint(rest[:len(rest)-uuid], 10, 64)
	return n, err == nil
}
