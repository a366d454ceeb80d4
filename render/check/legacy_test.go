package check_test

import (
	"strings"
	"testing"
)

// What a role allows is known when its binding is in the same commit, and the selector when the Service is.
func TestFixKnowsItsNeighbours(t *testing.T) {
	r := run(t, setRequest(t, `apiVersion: rbac.istio.io/v1alpha1
kind: ServiceRole
metadata: {name: reader, namespace: shop}
spec: {rules: [{services: [web.shop.svc.cluster.local], methods: [GET]}]}
---
apiVersion: rbac.istio.io/v1alpha1
kind: ServiceRoleBinding
metadata: {name: readers, namespace: shop}
spec: {subjects: [{user: cluster.local/ns/front/sa/web}], roleRef: {kind: ServiceRole, name: reader}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {role: web-server}, ports: [{name: http, port: 80}]}
`))
	for _, f := range withCode(r, "MOOR008") {
		if f.Object.Kind != "ServiceRoleBinding" {
			continue
		}
		if f.Fix == nil || f.Fix.Exact || f.Fix.Why == "" {
			t.Fatalf("fix: %+v", f.Fix)
		}
		for _, want := range []string{"role: web-server", "- GET", "cluster.local/ns/front/sa/web", "kind: AuthorizationPolicy"} {
			if !strings.Contains(f.Fix.YAML, want) {
				t.Errorf("the fix has no %q:\n%s", want, f.Fix.YAML)
			}
		}
		return
	}
	t.Error("the binding is not found")
}
