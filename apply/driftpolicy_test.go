package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
)

// drifting plans for what Git wants while something may be in force: the same, or another set.
func (f *fixture) drifting(wanted, inForce string, policy apply.DriftPolicy) *apply.Plan {
	f.Helper()
	set := f.set(wanted)
	policy.InForce = set
	if inForce != wanted {
		policy.InForce = f.set(inForce)
	}
	p, err := f.applier.Plan(f.Context(), f.unit, set, apply.Policy{Prune: true, Drift: policy})
	if err != nil {
		f.Fatalf("plan: %v", err)
	}
	return p
}

// told lists the steps that write or that are about drift.
func (f *fixture) told(p *apply.Plan) []string {
	var all []string
	for s := range p.Steps() {
		if s.Drift != "" || s.Action != apply.Unchanged && s.Action != apply.Skip {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", s.Action, f.short(s.ID), s.Drift)))
		}
	}
	return all
}

func (f *fixture) tells(p *apply.Plan, want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.told(p)); diff != "" {
		f.Fatalf("steps (-want +got):\n%s\n%s", diff, p)
	}
}

// threeMaps have one object that a test drops, one that it changes, one that it leaves.
const threeMaps = twoMaps + `---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: $NS}
data: {k: three}
`

// TestDriftIsToldFromACommit changes the cluster in every way, then Git, then both.
func TestDriftIsToldFromACommit(t *testing.T) {
	f := newFixture(t)
	f.sync(threeMaps)
	changed := strings.Replace(threeMaps, "k: three", "k: four", 1)
	extra := threeMaps + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: $NS}\ndata: {k: x}\n"

	f.edit("configmap", "a", `{"data":{"k":"mine"}}`)
	f.kubectl("delete", "configmap", "b")
	f.run(f.drifting(extra, extra, apply.DriftPolicy{Hold: map[render.ID]string{
		{Kind: "ConfigMap", Namespace: f.ns, Name: "a"}: "later", {Kind: "ConfigMap", Namespace: f.ns, Name: "b"}: "later",
	}}))

	f.tells(f.drifting(threeMaps, threeMaps, apply.DriftPolicy{}), "update ConfigMap/a changed", "create ConfigMap/b deleted", "delete ConfigMap/extra extra")
	alarm := f.drifting(threeMaps, threeMaps, apply.DriftPolicy{Alarm: true})
	f.tells(alarm, "skip ConfigMap/a changed", "skip ConfigMap/b deleted", "skip ConfigMap/extra extra")
	if alarm.Changes() || !alarm.Drifted() {
		t.Fatalf("changes %t, drifted %t, want drift and no change:\n%s", alarm.Changes(), alarm.Drifted(), alarm)
	}
	f.run(alarm)
	f.tells(f.drifting(threeMaps, threeMaps, apply.DriftPolicy{Alarm: true}), "skip ConfigMap/a changed", "skip ConfigMap/b deleted", "skip ConfigMap/extra extra")

	// A commit changes c, and drops what is there beside Git; what drifted in the others stays.
	f.tells(f.drifting(changed, threeMaps, apply.DriftPolicy{Alarm: true}),
		"skip ConfigMap/a changed", "skip ConfigMap/b deleted", "update ConfigMap/c", "delete ConfigMap/extra")
	// One that changes what drifted applies it whole.
	f.tells(f.drifting(strings.Replace(threeMaps, "k: one", "k: one and a half", 1), threeMaps, apply.DriftPolicy{Alarm: true}),
		"update ConfigMap/a", "skip ConfigMap/b deleted", "delete ConfigMap/extra")
	// Nothing in force: a first apply, or one that goes on.
	f.tells(f.plan(threeMaps), "update ConfigMap/a", "create ConfigMap/b", "delete ConfigMap/extra")

	f.run(f.drifting(threeMaps, threeMaps, apply.DriftPolicy{}))
	f.settled(threeMaps)
}

// TestOurOwnUnfinishedApplyIsNoDrift breaks an apply off and goes back to what was in force.
func TestOurOwnUnfinishedApplyIsNoDrift(t *testing.T) {
	f := newFixture(t)
	f.sync(threeMaps)
	half := strings.Replace(threeMaps, "k: one", "k: half", 1)
	half = half[:strings.LastIndex(half, "---")]
	f.run(f.drifting(half, threeMaps, apply.DriftPolicy{Alarm: true})) // a is changed, and c is deleted
	f.edit("configmap", "b", `{"data":{"k":"mine"}}`)

	back := f.drifting(threeMaps, threeMaps, apply.DriftPolicy{Alarm: true, Unfinished: true})
	f.tells(back, "update ConfigMap/a", "skip ConfigMap/b changed", "create ConfigMap/c")
	f.run(back)
	// The same when it is not known that an apply was broken off: then it is drift like any other.
	f.run(f.drifting(half, threeMaps, apply.DriftPolicy{Alarm: true}))
	f.tells(f.drifting(threeMaps, threeMaps, apply.DriftPolicy{Alarm: true}), "skip ConfigMap/a changed", "skip ConfigMap/b changed", "skip ConfigMap/c deleted")
}

// TestDriftIsHeldObjectByObject is what keeps a fight slow and everything else quick.
func TestDriftIsHeldObjectByObject(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.edit("configmap", "a", `{"data":{"k":"mine"}}`)
	f.edit("configmap", "b", `{"data":{"k":"mine"}}`)
	hold := map[render.ID]string{{Kind: "ConfigMap", Namespace: f.ns, Name: "a"}: "a fight"}
	p := f.drifting(twoMaps, twoMaps, apply.DriftPolicy{Hold: hold})
	f.tells(p, "skip ConfigMap/a changed", "update ConfigMap/b changed")
	if !strings.Contains(p.String(), "a fight") {
		t.Errorf("the plan does not say why:\n%s", p)
	}
	f.run(p)
	// A commit that changes the object does not wait.
	f.tells(f.drifting(strings.Replace(twoMaps, "k: one", "k: other", 1), twoMaps, apply.DriftPolicy{Hold: hold}), "update ConfigMap/a")
}

// TestDriftNamesWhoAndWhen finds manager, operation and time of each kind of write.
func TestDriftNamesWhoAndWhen(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap + "  other: two\n")
	began := time.Now().Truncate(time.Second)
	for _, test := range []struct {
		name, want string
		change     func()
	}{
		{"an edit", "/data/k by kubectl-edit Update", func() { f.edit("configmap", "a", `{"data":{"k":"x"}}`) }},
		{"a controller", "/data/k by some-controller Update", func() {
			f.kubectl("patch", "configmap", "a", "--type=merge", "--field-manager=some-controller", "-p", `{"data":{"k":"y"}}`)
		}},
		{"an apply", "/data/k by other-tool Apply", func() {
			file := f.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: $NS}\ndata: {k: z}\n")
			f.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=other-tool", "-f", file)
		}},
		{"what Git does not say", "/data/more by kubectl-edit Update", func() { f.edit("configmap", "a", `{"data":{"more":"x"}}`) }},
		{"a removal leaves no name", "/data/k by  ", func() { f.edit("configmap", "a", `{"data":{"k":null}}`) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := *f
			f.T = t
			test.change()
			p := f.drifting(oneMap+"  other: two\n", oneMap+"  other: two\n", apply.DriftPolicy{})
			var got []string
			for s := range p.Steps() {
				for _, d := range s.Diff {
					got = append(got, fmt.Sprintf("%s by %s %s", d.Path, d.Manager, d.Operation))
					if d.Manager != "" && (d.ChangedAt.Before(began) || d.ChangedAt.After(time.Now())) {
						t.Errorf("%s was changed at %s, want it after %s", d.Path, d.ChangedAt, began)
					}
					if d.Manager != "" && !strings.Contains(p.String(), "(set by "+d.Who()+")") {
						t.Errorf("the plan does not say %q:\n%s", d.Who(), p)
					}
				}
			}
			if diff := cmp.Diff([]string{test.want}, got); diff != "" {
				t.Errorf("who wrote what (-want +got):\n%s", diff)
			}
			f.run(p)
			f.settled(oneMap + "  other: two\n")
		})
	}
}
