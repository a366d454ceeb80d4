package apply_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

func compile(t *testing.T, checks ...apply.HealthCheck) *apply.HealthChecks {
	t.Helper()
	compiled, err := apply.CompileHealthChecks("spec.healthChecks", checks)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestHealthChecks(t *testing.T) {
	const (
		ready  = `status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')`
		failed = `status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'False')`
		object = "apiVersion: example.com/v2\nkind: Machine\nmetadata: {name: a, namespace: n, generation: 3}\n"
	)
	all := apply.HealthCheck{Current: ready, Failed: failed, InProgress: `metadata.?annotations['busy'].orValue('') == 'yes'`}
	for _, c := range []struct {
		name       string
		check      apply.HealthCheck
		rest, want string
	}{
		{"current", all, `status: {conditions: [{type: Ready, status: "True"}]}`, "Current"},
		{"failed", all, `status: {conditions: [{type: Ready, status: "False"}]}`, "Failed: spec.healthChecks[0].failed is true"},
		{"none is true", all, `status: {conditions: [{type: Ready, status: Unknown}]}`, "InProgress: spec.healthChecks[0].current is not true"},
		{"in progress is asked first", apply.HealthCheck{Current: "true", Failed: "true", InProgress: "true"}, "", "InProgress: inProgress is true"},
		{"failed is asked before current", apply.HealthCheck{Current: "true", Failed: "true"}, "", "Failed"},
		{"the generation is not observed", apply.HealthCheck{Current: "true"}, "status: {observedGeneration: 2}", "InProgress: status.observedGeneration is 2"},
		{"it is, as text", apply.HealthCheck{Current: "true"}, `status: {observedGeneration: "3"}`, "Current"},
		{"no status at all", apply.HealthCheck{Current: "!has(status.phase)"}, "", "Current"},
		{"other top-level fields", apply.HealthCheck{Current: "phase == 'up' && kind == 'Machine' && apiVersion.startsWith('example.com')"}, "phase: up", "Current"},
		{"a field that is missing", apply.HealthCheck{Current: ready}, "status: {}", "Unknown: evaluate spec.healthChecks[0].current: no such key: conditions; use has"},
		{"a top-level field that is missing", apply.HealthCheck{Current: "phase == 'up'"}, "", "Unknown: spec.healthChecks[0].current"},
		{"no boolean", apply.HealthCheck{Current: "status.phase"}, "status: {phase: up}", "Unknown: gives a string"},
		{"numbers of two kinds", apply.HealthCheck{Current: "status.ready >= 0.5 * double(spec.size)"}, "spec: {size: 4}\nstatus: {ready: 2.0}", "Current"},
		{"the library of the API server", apply.HealthCheck{Current: "quantity(status.free).isGreaterThan(quantity('1Gi')) && status.names.isSorted()"}, "status: {free: 2Gi, names: [a, b]}", "Current"},
		{"a macro over a map", apply.HealthCheck{Current: "status.all(k, v, v == 1)"}, "status: {a: 1}", "Current"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check.APIVersion, c.check.Kind = "example.com/v1", "Machine" // another version of the same kind
			healthy(t, apply.HealthOf(objectOf(t, object+c.rest), compile(t, c.check)), c.want)
		})
	}
}

func TestHealthCheckMayNotTakeLong(t *testing.T) {
	long := strings.Repeat("1, ", 300) + "1"
	check := apply.HealthCheck{APIVersion: "v1", Kind: "ConfigMap", Current: "[" + long + "].all(a, [" + long + "].all(b, [" + long + "].all(c, [" + long + "].all(d, a + b + c + d > 0))))"}
	began := time.Now()
	h := apply.HealthOf(objectOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), compile(t, check))
	healthy(t, h, "Unknown: cost limit exceeded")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestHealthCheckTellsNothingOfASecret(t *testing.T) {
	u := objectOf(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {last: hunter2}}\ndata: {password: hunter2}\nstringData: {password: hunter2}\n")
	for _, text := range []string{"int(data.password) > 0", "int(stringData.password) > 0", "int(metadata.annotations.last) > 0", "data.password == 'hunter2'"} {
		h := apply.HealthOf(u, compile(t, apply.HealthCheck{APIVersion: "v1", Kind: "Secret", Current: text}))
		if strings.Contains(h.Message, "hunter2") || h.Current() {
			t.Errorf("%s: %s %s", text, h.Status, h.Message)
		}
	}
}

func TestHealthChecksThatDoNotCompile(t *testing.T) {
	for _, c := range []struct{ name, apiVersion, kind, current, want string }{
		{"nothing", "v1", "ConfigMap", " ", "spec.healthChecks[1].current is empty"},
		{"syntax", "v1", "ConfigMap", "status.phase ==", "spec.healthChecks[1].current does not compile"},
		{"a function that is none", "v1", "ConfigMap", "matchesAll(status.phase)", "undeclared reference to 'matchesAll'"},
		{"no boolean", "v1", "ConfigMap", "'up'", "gives a string, want true or false"},
		{"no kind", "v1", "", "true", "is no kind"},
		{"no version", "a/b/c", "X", "true", "is no kind"},
		{"twice", "example.com/v2", "Machine", "true", "Machine.example.com is there twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := apply.CompileHealthChecks("spec.healthChecks", []apply.HealthCheck{
				{APIVersion: "example.com/v1", Kind: "Machine", Current: "true"}, {APIVersion: c.apiVersion, Kind: c.kind, Current: c.current},
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	all := compile(t)
	if all.Key() != "" {
		t.Errorf("no checks have the key %q", all.Key())
	}
}

// What is remembered of an object's health counts for the expressions that it was found by.
func TestHealthChecksThatChangeAreAskedAnew(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	check := apply.HealthCheck{APIVersion: "v1", Kind: "ConfigMap", Current: "data.k == 'two'"}
	f.unit.Health = compile(t, check)
	f.sync(oneMap)
	p := f.plan(oneMap)
	f.want(p)
	if sick := p.Unhealthy(); len(sick) != 1 || !strings.Contains(sick[0].Message, "current is not true") {
		t.Fatalf("unhealthy: %v", sick)
	}
	wire.take()
	f.settled(oneMap)
	if asked := wire.take(); len(asked) != 1 {
		t.Errorf("rest cost %v", asked)
	}

	check.Current = "data.k == 'one'"
	f.unit.Health = compile(t, check)
	p = f.plan(oneMap)
	f.want(p)
	if sick := p.Unhealthy(); len(sick) != 0 {
		t.Errorf("unhealthy after the expressions changed: %v", sick)
	}
	f.unit.Health = nil
	f.settled(oneMap)
	wire.take()
	f.settled(oneMap)
	if asked := wire.take(); len(asked) != 1 {
		t.Errorf("rest cost %v", asked)
	}
}

// istiod is not here: the test writes into the status what it would.
func TestHealthOfAVirtualServiceWithStatusWrittenByTheTest(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(mesh)
	status := func(text string) *apply.Plan {
		t.Helper()
		f.kubectl("patch", "virtualservices.networking.istio.io", "reviews", "--subresource=status", "--type=merge", "-p", text)
		p := f.plan(mesh)
		f.want(p)
		return p
	}
	p := status(`{"status":{"observedGeneration":"1","validationMessages":[{"level":"ERROR","type":{"code":"IST0101","name":"ReferencedResourceNotFound"},"documentationUrl":"https://istio.io"}]}}`)
	if sick := p.Unhealthy(); len(sick) != 1 || sick[0].Status != "Failed" || !strings.Contains(sick[0].Message, "IST0101") {
		t.Errorf("unhealthy: %v", sick)
	}
	if sick := status(`{"status":{"validationMessages":null}}`).Unhealthy(); len(sick) != 0 {
		t.Errorf("unhealthy after istiod found it well: %v", sick)
	}
}
