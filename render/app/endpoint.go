package app

import (
	"bytes"
	"encoding/json"

	networking "istio.io/api/networking/v1alpha3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type endpointWords struct {
	Address  string            `json:"address"`
	Ports    map[string]uint32 `json:"ports"`
	Labels   map[string]string `json:"labels"`
	Locality string            `json:"locality"`
	Weight   uint32            `json:"weight"`
	Network  string            `json:"network"`
}

// endpoint reads one.
func (b *builder) endpoint(e apiextensionsv1.JSON, path []string) *networking.WorkloadEntry {
	var w endpointWords
	if json.Unmarshal(e.Raw, &w.Address) != nil {
		decoder := json.NewDecoder(bytes.NewReader(e.Raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&w); err != nil {
			b.fail(path, "write an address, or a mapping with address, ports, labels, locality, weight, network", "is not an endpoint: %w", err)
		}
	}
	if w.Address == "" && w.Network == "" {
		b.fail(path, "write address", "has no address")
	}
	return &networking.WorkloadEntry{
		Address: w.Address, Ports: w.Ports, Labels: w.Labels, Locality: w.Locality, Weight: w.Weight, Network: w.Network,
	}
}
