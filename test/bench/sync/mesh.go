package main

import (
	"fmt"
	"strings"
)

// pair is a ServiceEntry and the DestinationRule of its host.
func pair(ns, name string, connections int) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  hosts: [%[2]s.%[1]s.example.com]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{name: https, number: 443, protocol: TLS}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  host: %[2]s.%[1]s.example.com
  trafficPolicy: {connectionPool: {tcp: {maxConnections: %[3]d}}}
`, ns, name, connections)
}

// folder is a kustomization of n objects, ten to a file.
func folder(path, ns, prefix string, n int) map[string]string {
	files := map[string]string{}
	var resources strings.Builder
	for i := 0; i < n/2; i += 5 {
		var content []string
		for j := i; j < min(i+5, n/2); j++ {
			content = append(content, pair(ns, nameOf(prefix, j), 100))
		}
		file := fmt.Sprintf("part-%03d.yaml", i/5)
		files[path+"/"+file] = strings.Join(content, "---\n")
		fmt.Fprintf(&resources, "- %s\n", file)
	}
	files[path+"/kustomization.yaml"] = "resources:\n" + resources.String()
	return files
}

func nameOf(prefix string, n int) string { return fmt.Sprintf("%s-%03d", prefix, n) }
