package check_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// payment is a Service with a workload, in a namespace whose pods get a proxy.
const payment = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Service
metadata: {name: payment, namespace: shop}
spec: {selector: {app: payment}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: payment, namespace: shop}
spec:
  selector: {matchLabels: {app: payment}}
  template:
    metadata: {labels: {app: payment}}
    spec: {containers: [{name: payment, image: "registry.example.com/payment:1.4.2", ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: payment-7d4b9, namespace: shop, labels: {app: payment}, annotations: {sidecar.istio.io/status: "{}"}}
---
`

// TestRelationsWithTheCluster looks at commits whose faults are between what they bring and what lives: who is older, what is pruned, and who is to blame.
func TestRelationsWithTheCluster(t *testing.T) {
	const plain = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: payment, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {host: payment, trafficPolicy: {tls: {mode: DISABLE}}}
---
`
	const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: payment, namespace: shop}
spec: {selector: {matchLabels: {app: payment}}, mtls: {mode: STRICT}}
---
`
	for _, tt := range []struct {
		name, commit, cluster string
		// want holds the code, the object and the field of each finding of a rule on relations.
		want []string
	}{
		{
			name: "the policy of the commit is to blame for what it does to a living rule", commit: strict, cluster: payment + plain,
			want: []string{"MOOR023 PeerAuthentication/shop/payment spec.mtls.mode"},
		},
		{
			name: "the rule of the commit is to blame where the policy lives", commit: plain, cluster: payment + strict,
			want: []string{"MOOR023 DestinationRule/shop/payment spec.trafficPolicy.tls.mode"},
		},
		{
			name: "a sidecar that goes with the commit", cluster: payment,
			commit: plain + strict + strings.Replace(payment[strings.Index(payment, "apiVersion: apps/v1"):strings.Index(payment, "apiVersion: v1\nkind: Pod")],
				"labels: {app: payment}", `labels: {app: payment, sidecar.istio.io/inject: "false"}`, 1),
			want: nil,
		},
		{
			name: "the living rule is older, whatever it is called",
			commit: `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: a-new-one, namespace: shop}
spec: {host: payment.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 3}}}
`,
			cluster: strings.Replace(plain, "tls: {mode: DISABLE}", "loadBalancer: {simple: RANDOM}", 1) + payment,
			want:    []string{"MOOR021 DestinationRule/shop/a-new-one spec.trafficPolicy"},
		},
		{
			name: "the older of two policies is the one that lives", cluster: strings.ReplaceAll(strict, "name: payment", "name: z-old") + payment, commit: strict,
			want: []string{"MOOR040 PeerAuthentication/shop/payment spec"},
		},
		{
			name: "a living lock is the reason that a new policy allows nothing", cluster: payment + `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop}
spec: {action: DENY, rules: [{}]}
`,
			commit: `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: payment-from-cart, namespace: shop}
spec: {selector: {matchLabels: {app: payment}}, rules: [{from: [{source: {serviceAccounts: [cart]}}]}]}
`,
			want: []string{"MOOR041 AuthorizationPolicy/shop/payment-from-cart spec.rules"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set := &render.Set{Objects: objects(t, "commit.yaml", []byte(strings.TrimSuffix(tt.commit, "---\n")))}
			living := cluster(t, txtar.File{Name: "cluster.yaml", Data: []byte(strings.TrimSuffix(tt.cluster, "---\n"))})
			report, err := check.New().Check(t.Context(), check.Request{Set: set, Cluster: living})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range report.Findings {
				if f.Code >= "MOOR020" && f.Code <= "MOOR045" && !f.Known && !f.Foreign {
					got = append(got, f.Code+" "+f.Object.String()+" "+f.Field)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, lines(report))
			}
		})
	}
}
