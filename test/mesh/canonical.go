package mesh

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Config is what one proxy gets, by name, as JSON values without what the package comment names.
type Config struct {
	Listeners, Routes, Clusters, Endpoints map[string]any
}

// canonical takes what a discovery server gives, in process or over the wire.
func canonical(listeners []*listener.Listener, routes []*route.RouteConfiguration, clusters []*cluster.Cluster,
	endpoints []*endpoint.ClusterLoadAssignment,
) (c Config, err error) {
	if c.Listeners, err = byName(listeners, (*listener.Listener).GetName); err != nil {
		return c, err
	}
	if c.Routes, err = byName(routes, (*route.RouteConfiguration).GetName); err != nil {
		return c, err
	}
	if c.Clusters, err = byName(clusters, (*cluster.Cluster).GetName); err != nil {
		return c, err
	}
	c.Endpoints, err = byName(endpoints, (*endpoint.ClusterLoadAssignment).GetClusterName)
	return c, err
}

// byName makes resources JSON values.
func byName[T proto.Message](resources []T, name func(T) string) (map[string]any, error) {
	out := make(map[string]any, len(resources))
	for _, r := range resources {
		if _, twice := out[name(r)]; twice {
			return nil, fmt.Errorf("%T %s is there twice", r, name(r))
		}
		value, err := plain(r)
		if err != nil {
			return nil, fmt.Errorf("%T %s: %w", r, name(r), err)
		}
		out[name(r)] = value
	}
	return out, nil
}

// plain makes a message a JSON value, typed configs within it included, and leaves out what says only where a setting came from.
func plain(m proto.Message) (any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return anonymous(value), nil
}

// anonymous changes a JSON value; it returns it too.
func anonymous(value any) any {
	switch v := value.(type) {
	case map[string]any:
		dropSource(v)
		if rules, ok := rulesOf(v); ok {
			v["policies"] = rules
		}
		if hosts, ok := v["virtual_hosts"].([]any); ok {
			v["virtual_hosts"] = hostsByName(hosts)
		}
		for _, inner := range v {
			anonymous(inner)
		}
	case []any:
		for _, inner := range v {
			anonymous(inner)
		}
	}
	return value
}

// dropSource removes the path of the Istio object that Istio notes in the metadata of what it became.
func dropSource(v map[string]any) {
	filters, _ := v["filter_metadata"].(map[string]any)
	istio, _ := filters["istio"].(map[string]any)
	if istio == nil {
		return
	}
	delete(istio, "config")
	if len(istio) == 0 {
		delete(filters, "istio")
	}
}

// rulesOf gives the policies of an RBAC filter as a sorted list, if that is what v holds.
func rulesOf(v map[string]any) ([]any, bool) {
	policies, _ := v["policies"].(map[string]any)
	if len(policies) == 0 {
		return nil, false
	}
	var out []any
	for name, rule := range policies {
		if !strings.HasPrefix(name, "ns[") {
			return nil, false
		}
		out = append(out, anonymous(rule))
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(sortable(a), sortable(b)) })
	return out, true
}

// sortable is a text of a JSON value that is the same for equal values.
func sortable(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // a value that came out of JSON goes back
	}
	return string(text)
}

func hostsByName(hosts []any) any {
	out := make(map[string]any, len(hosts))
	for _, h := range hosts {
		fields, _ := h.(map[string]any)
		name, _ := fields["name"].(string)
		if _, twice := out[name]; twice || name == "" {
			return hosts
		}
		out[name] = h
	}
	return out
}
