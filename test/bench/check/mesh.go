package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

const app = `apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: %[2]s, labels: {app: %[1]s}}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s]
  http:
  - name: canary
    match: [{headers: {x-canary: {exact: "true"}}}]
    route: [{destination: {host: %[1]s, subset: v2}}]
    retries: {attempts: 2, perTryTimeout: 2s}
  - route:
    - {destination: {host: %[1]s, subset: v1}, weight: 90}
    - {destination: {host: %[1]s, subset: v2}, weight: 10}
    timeout: 5s
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  host: %[1]s
  trafficPolicy:
    tls: {mode: ISTIO_MUTUAL}
    outlierDetection: {consecutive5xxErrors: 5, interval: 10s, baseEjectionTime: 30s, maxEjectionPercent: 50}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
`

// texts writes n objects, three to an app, and no more: the last app may be without some.
func texts(n int) []string {
	var all []string
	for i := range n {
		if i%3 == 0 {
			all = append(all, fmt.Sprintf(app, fmt.Sprintf("app-%05d", i/3), fmt.Sprintf("team-%d", i/3%10)))
		}
	}
	if rest := n % 3; rest > 0 {
		last := strings.SplitAfterN(all[len(all)-1], "---\n", 3)
		all[len(all)-1] = strings.Join(last[:rest], "")
	}
	return all
}

// mesh is n objects as a render gives them.
func mesh(n int) (*render.Set, error) {
	set := &render.Set{}
	for i, text := range texts(n) {
		for document := range strings.SplitSeq(text, "---\n") {
			if document == "" {
				continue
			}
			u, err := read(document)
			if err != nil {
				return nil, err
			}
			set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(u), Origin: render.Origin{File: fmt.Sprintf("app-%05d.yaml", i), Line: 1}})
		}
	}
	return set, nil
}

func read(document string) (*unstructured.Unstructured, error) {
	js, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(js)
}

// changed is the set with another object in the place of one, a VirtualService with another timeout.
func changed(set *render.Set, round int) (*render.Set, error) {
	next := &render.Set{Objects: append([]render.Object(nil), set.Objects...)}
	i := 1
	u := next.Objects[i].Unstructured().DeepCopy()
	routes, _, err := unstructured.NestedSlice(u.Object, "spec", "http")
	if err != nil {
		return nil, err
	}
	routes[1].(map[string]any)["timeout"] = fmt.Sprintf("%ds", 6+round)
	if err := unstructured.SetNestedSlice(u.Object, routes, "spec", "http"); err != nil {
		return nil, err
	}
	next.Objects[i].Content = render.ContentOf(u)
	return next, nil
}

// living is a cluster that has the objects of a set.
func living(set *render.Set) *world.Cluster {
	c := &world.Cluster{}
	for _, o := range set.Objects {
		c.Objects = append(c.Objects, o.Unstructured().DeepCopy())
	}
	return c
}

// files writes n objects, a file for each app.
func files(dir string, n int) error {
	for i, text := range texts(n) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("app-%05d.yaml", i)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
