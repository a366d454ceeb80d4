package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
)

const service = `
apiVersion: v1
kind: Service
metadata:
  name: dns
  namespace: $NS
  annotations: {}
spec:
  clusterIP: None
  selector: {app: dns}
  ports:
  - {name: tcp, port: 53}
  - {name: udp, port: 53, protocol: UDP}
`

func TestServiceWithOnePortTwice(t *testing.T) {
	f := newFixture(t)
	f.sync(service)
	f.settled(service)
	f.applier.Forget(f.unit.ID)
	f.settled(service)
	changed := strings.Replace(service, "name: udp", "name: udp-dns", 1)
	p, _ := f.sync(changed)
	if diff := cmp.Diff([]string{
		`/spec/ports/1: {"name":"udp","port":53,"protocol":"UDP","targetPort":53} → (none)`,
		`/spec/ports/1: (none) → {"name":"udp-dns","port":53,"protocol":"UDP","targetPort":53}`,
	}, f.diffs(p)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if got := f.kubectl("get", "service", "dns", "-o", "jsonpath={.spec.ports[*].name} {.spec.ports[*].protocol}"); got != "tcp udp-dns TCP UDP" {
		t.Fatalf("ports: %s", got)
	}
}

func TestDuplicateListKeysAreNamed(t *testing.T) {
	f := newFixture(t)
	err := f.refuse(strings.Replace(service, "protocol: UDP", "protocol: TCP", 1))
	for _, word := range []string{"Service/" + f.ns + "/dns", "git.yaml:1", "duplicate", "53", "TCP"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %v", word, err)
		}
	}
}

func TestImmutable(t *testing.T) {
	for _, test := range []struct {
		name, kind, from, old, changed, field string
	}{
		{"clusterIP of a Service", "service/dns", service, "clusterIP: None", "clusterIP: 10.0.0.77", "spec.clusterIPs[0]"},
		{"selector of a Deployment", "deployment/d", deployment, "app: d}", "app: e}", "spec.selector"},
		{"a CEL rule", "widget/w", widget, "size: 1", "size: 1, fixed: other", "spec.fixed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			from := test.from
			if test.kind == "widget/w" {
				f.widgets()
				from = strings.Replace(widget, "size: 1", "size: 1, fixed: one", 1)
				test.old = "size: 1, fixed: one"
			}
			f.sync(from)
			uid := f.kubectl("get", test.kind, "-o", "jsonpath={.metadata.uid}")
			changed := strings.ReplaceAll(from, test.old, test.changed)

			err := f.refuse(changed)
			for _, word := range []string{test.field, "mooring.dev/force", "git.yaml"} {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error lacks %q: %v", word, err)
				}
			}

			forced := strings.Replace(changed, "annotations: {}", "annotations: {mooring.dev/force: enabled}", 1)
			if forced == changed {
				forced = strings.Replace(changed, "namespace: $NS", "namespace: $NS, annotations: {mooring.dev/force: enabled}", 1)
			}
			p, r := f.sync(forced)
			if got := p.Counts(); got.Replace != 1 || got.Changes() != 1 {
				t.Fatalf("want one replacement, got:\n%s", p)
			}
			if got := r.Counts(); got.Replace != 1 || r.Objects != 1 {
				t.Fatalf("result: %s, %d objects", got, r.Objects)
			}
			for s := range p.Steps() {
				if len(s.Diff) == 0 {
					t.Errorf("the plan does not say what changes:\n%s", p)
				}
			}
			if now := f.kubectl("get", test.kind, "-o", "jsonpath={.metadata.uid}"); now == uid {
				t.Error("the object was not replaced")
			}
			f.settled(forced)
		})
	}
}

// A schema error is no immutable field, and neither is a change that is wrong in itself: force deletes nothing for it.
func TestForceNeedsImmutability(t *testing.T) {
	f := newFixture(t)
	f.widgets()
	forced := strings.Replace(widget, "namespace: $NS", "namespace: $NS, annotations: {mooring.dev/force: enabled}", 1)
	forced = strings.Replace(forced, "size: 1", "size: 1, fixed: one", 1)
	f.sync(forced)
	for _, wrong := range []string{"size: none, fixed: one", "size: 0, fixed: one", "size: 0, fixed: two", "unknown: 1, fixed: two"} {
		err := f.refuse(strings.Replace(forced, "size: 1, fixed: one", wrong, 1))
		if len(apply.ObjectErrors(err)) != 1 {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	f.settled(forced)
}

func TestForceNeverForDefinitions(t *testing.T) {
	f := newFixture(t)
	f.sync(widgetDefinition)
	t.Cleanup(func() { f.dropWidgets() })
	forced := strings.Replace(widgetDefinition, "test.mooring.dev}\nspec", "test.mooring.dev, annotations: {mooring.dev/force: enabled}}\nspec", 1)
	err := f.refuse(strings.Replace(forced, "scope: Namespaced", "scope: Cluster", 1))
	if !strings.Contains(err.Error(), "never deletes a CustomResourceDefinition") {
		t.Fatal(err)
	}
}

// A replaced object is deleted and created; an agent that dies in between creates it in the next pass.
func TestReplaceSurvivesACrash(t *testing.T) {
	f := newFixture(t)
	wire := &recorder{cut: func(write int) bool { return write == 1 }}
	f.sync(service)
	forced := strings.NewReplacer("annotations: {}", "annotations: {mooring.dev/force: enabled}", "clusterIP: None", "clusterIP: 10.0.0.78").Replace(service)
	old := f.applier
	f.applier = f.newApplier(wire.config(f.cluster.Config()))
	if _, err := f.applier.Run(t.Context(), f.plan(forced)); err == nil {
		t.Fatal("the run went well with a cut wire")
	}
	f.gone("", "v1", "services", "dns")
	f.applier = old
	p, _ := f.sync(forced)
	f.want(p, "create Service/dns")
	f.settled(forced)
}
