package world_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render/check/world"
)

func TestMeshConfig(t *testing.T) {
	const plain = `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "rootNamespace: mesh-root\ndefaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}}", meshNetworks: "networks: {east: {endpoints: [{fromRegistry: Kubernetes}], gateways: [{address: 1.1.1.1, port: 443}]}}"}}`
	const revised = `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-1-31, namespace: istio-system}, data: {mesh: "rootNamespace: revised"}}`
	const other = `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-ca-root-cert, namespace: istio-system}, data: {root-cert.pem: "x"}}`
	const broken = `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "rootNamespace: {}"}}`
	const elsewhere = `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: shop}, data: {mesh: "rootNamespace: nobody"}}`
	for _, test := range []struct {
		name  string
		maps  []string
		root  string
		known bool
	}{
		{"nothing", nil, "istio-system", false},
		{"plain", []string{other, plain, revised}, "mesh-root", true},
		{"a revision", []string{other, revised}, "revised", true},
		{"broken", []string{broken}, "istio-system", false},
		{"elsewhere", []string{elsewhere}, "istio-system", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for _, text := range test.maps {
				objects = append(objects, object(t, text))
			}
			w := world.NewConverter().After(set(objects...), nil)
			config, root := w.MeshConfig()
			if root != test.root || w.MeshKnown() != test.known || config.GetDefaultConfig().GetProxyAdminPort() != 15000 {
				t.Errorf("root %s, known %t: %v", root, w.MeshKnown(), w.Mesh().Err)
			}
		})
	}
	m := world.NewConverter().After(set(object(t, plain)), nil).Mesh()
	if m.Config.DefaultConfig.ProxyMetadata["ISTIO_META_DNS_CAPTURE"] != "true" || len(m.Networks.Networks) != 1 || m.Source == nil || m.Err != nil {
		t.Errorf("%+v", m)
	}
}

func TestMeshKnownInACluster(t *testing.T) {
	c := world.NewConverter()
	if !c.After(set(), &world.Cluster{}).MeshKnown() {
		t.Error("a cluster without the ConfigMap has Istio's defaults")
	}
	if c.After(set(), &world.Cluster{Unread: map[schema.GroupKind]string{{Kind: "ConfigMap"}: "forbidden"}}).MeshKnown() {
		t.Error("where ConfigMaps were not read, nothing is known")
	}
}
