package main

import (
	"fmt"
	"maps"
	"strings"
)

// shape is a way to write a unit. Each has a third of VirtualServices, DestinationRules and Services.
type shape struct {
	name string
	dir  string // that is rendered
	// most is how many objects it is measured with at most; 0 is any number.
	most int
	// files of n objects. changed is one object otherwise, and says in which file.
	files func(n, changed, weight int) map[string]string
}

// perFile is how many objects a file has where there are many: an application's three, and then some.
const perFile = 10

func shapes() []shape {
	return []shape{
		{"one large file", "mesh", 0, func(n, changed, weight int) map[string]string {
			return map[string]string{"mesh/kustomization.yaml": "resources: [mesh.yaml]\n", "mesh/mesh.yaml": objects(0, n, changed, weight)}
		}},
		{"many files", "mesh", 0, func(n, changed, weight int) map[string]string { return folder("mesh", n, changed, weight, "") }},
		{"overlay: namespace, labels, patches", "overlays/prod", 0, func(n, changed, weight int) map[string]string {
			files := folder("base", n, changed, weight, "labels: [{pairs: {app.kubernetes.io/part-of: shop}}]\n")
			maps.Copy(files, overlay(n))
			return files
		}},
		// A prefix is not divided, so that time grows with the square as it does for kustomize.
		{"undivided: a name prefix", "mesh", 1000, func(n, changed, weight int) map[string]string {
			return folder("mesh", n, changed, weight, "namePrefix: blue-\n")
		}},
	}
}

// folder writes n objects into files of perFile, and a kustomization that lists them.
func folder(dir string, n, changed, weight int, fields string) map[string]string {
	files := map[string]string{}
	var list strings.Builder
	list.WriteString("resources:\n")
	for from := 0; from < n; from += perFile {
		name := fmt.Sprintf("app-%05d.yaml", from)
		fmt.Fprintln(&list, "-", name)
		files[dir+"/"+name] = objects(from, min(from+perFile, n), changed, weight)
	}
	files[dir+"/kustomization.yaml"] = list.String() + fields
	return files
}

// overlay has a namespace, labels, two patches with a target and twenty for one object each.
func overlay(n int) map[string]string {
	var k strings.Builder
	k.WriteString("resources: [../../base]\nnamespace: prod\nlabels: [{pairs: {env: prod}}]\ncommonAnnotations: {team: mesh}\npatches:\n")
	k.WriteString("- target: {kind: DestinationRule}\n  path: pool.yaml\n- target: {kind: VirtualService, name: app-1.*}\n  patch: |-\n    - {op: add, path: /spec/exportTo, value: [\".\"]}\n")
	files := map[string]string{"overlays/prod/pool.yaml": "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: any}\nspec: {trafficPolicy: {connectionPool: {tcp: {maxConnections: 1000}}}}\n"}
	const some = 20
	for i := range some {
		app := i * (n / 3 / some)
		name := fmt.Sprintf("patch-%02d.yaml", i)
		fmt.Fprintf(&k, "- path: %s\n", name)
		files["overlays/prod/"+name] = fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: app-%05d}\nspec: {gateways: [mesh, ingress/public]}\n", app)
	}
	files["overlays/prod/kustomization.yaml"] = k.String()
	return files
}

// objects writes the objects from one number to before another.
func objects(from, to, changed, weight int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		w := 90
		if i == changed {
			w = weight
		}
		b.WriteString("---\n")
		app := fmt.Sprintf("app-%05d", i/3)
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, virtualService, app, app, app, app, w, app, 100-w)
		case 1:
			fmt.Fprintf(&b, destinationRule, app, app, w)
		default:
			fmt.Fprintf(&b, service, app, app, app, 8000+w)
		}
	}
	return b.String()
}

const virtualService = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: %s
spec:
  hosts: [%s]
  http:
  - name: canary
    match:
    - headers: {x-canary: {exact: "true"}}
    route:
    - destination: {host: %s, subset: v2}
    retries: {attempts: 2, perTryTimeout: 2s}
  - route:
    - destination: {host: %s, subset: v1}
      weight: %d
    - destination: {host: %s, subset: v2}
      weight: %d
    timeout: 5s
`

const destinationRule = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: %s
spec:
  host: %s
  trafficPolicy:
    tls: {mode: ISTIO_MUTUAL}
    outlierDetection: {consecutive5xxErrors: 5, interval: 10s, baseEjectionTime: 30s, maxEjectionPercent: %d}
  subsets:
  - name: v1
    labels: {version: v1}
  - name: v2
    labels: {version: v2}
`

const service = `apiVersion: v1
kind: Service
metadata:
  name: %s
  labels: {app: %s}
spec:
  selector: {app: %s}
  ports:
  - {name: http, port: 80, targetPort: %d}
`
