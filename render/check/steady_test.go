package check_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// steadyMesh is a small shop. The round is in a rule, so that each round has an object that nobody saw before.
const steadyMesh = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec: {hosts: [web], http: [{route: [{destination: {host: web, subset: v1}}], timeout: 5s}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web, trafficPolicy: {connectionPool: {tcp: {maxConnections: %d}}}, subsets: [{name: v1, labels: {version: v1}}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, rules: [{from: [{source: {namespaces: [shop]}}]}]}
`

// TestFiveHundredChecks is the agent's life in short: a set comes anew with each commit, the cluster is read anew, analyzers, generator and policies run. Memory
// must be as after the fiftieth, and nothing may go on running.
func TestFiveHundredChecks(t *testing.T) {
	policies, err := policy.Parse("policies/owned.yaml", []byte(owned))
	if err != nil {
		t.Fatal(err)
	}
	checker := check.New()
	round := func(i int) {
		set := setOf(t, fmt.Sprintf(steadyMesh, i+1))
		cluster := &world.Cluster{}
		for _, o := range setOf(t, fmt.Sprintf(steadyMesh, i)).Objects {
			cluster.Objects = append(cluster.Objects, o.Unstructured())
		}
		report, err := checker.Check(t.Context(), check.Request{Set: set, Cluster: cluster, Policies: policies, Mooring: map[string]any{"name": "prod"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range report.Gaps {
			if strings.HasPrefix(g.Code, "MOOR05") {
				t.Fatalf("round %d: the proxies were not asked: %v", i, g)
			}
		}
		if len(withCode(report, "ACME001")) == 0 {
			t.Fatalf("round %d: the policy was not asked", i)
		}
	}
	round(0)
	running := goleak.IgnoreCurrent() // what the libraries start once for the life of a process, such as loggers
	var early uint64
	for i := 1; i <= 500; i++ {
		round(i)
		if i == 50 {
			early = heap()
		}
	}
	const slack = 3 << 20
	if late := heap(); late > early+slack {
		t.Errorf("%d kB of heap after 50 checks, %d kB after 500", early>>10, late>>10)
	} else {
		t.Logf("%d kB of heap after 50 checks, %d kB after 500", early>>10, late>>10)
	}
	goleak.VerifyNone(t, running)
}

// heap is what is still in use. What cleanups let go of is gone with the next collection.
func heap() uint64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
