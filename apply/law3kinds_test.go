package apply_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/apply"
)

const twoServices = `
apiVersion: v1
kind: Service
metadata: {name: a, namespace: $NS}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: $NS}
spec: {ports: [{port: 80}]}
`

// A folder that is no longer among the resources takes whole kinds with it. The percentage does not always notice.
func TestLaw3WholeKindNeedsAWord(t *testing.T) {
	f := newFixture(t)
	f.policy.WholeKinds = 2
	both := twoMaps + "---\n" + twoServices
	f.sync(both)
	f.guarded(f.plan(twoMaps), apply.GuardKind, "no Service any more", "all 2 of them", "Service/"+f.ns+"/a", "Service/"+f.ns+"/b")

	// As long as Git has one of them it is not the whole kind.
	one := twoMaps + "---\n" + strings.Split(twoServices, "---\n")[0]
	p, _ := f.sync(one)
	f.want(p, "delete Service/b")

	// The last one is retired like any other object.
	p, _ = f.sync(twoMaps)
	f.want(p, "delete Service/a")
}

func TestLaw3WholeKindWithOneThatIsKept(t *testing.T) {
	f := newFixture(t)
	f.policy.WholeKinds = 2
	f.sync(twoMaps + "---\n" + twoServices)
	f.kubectl("annotate", "service", "b", "mooring.dev/prune=disabled")
	p, _ := f.sync(twoMaps)
	f.want(p, "delete Service/a", "skip Service/b")
}

func TestLaw3EveryFaultOfAPlanIsNamed(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps + "---\n" + twoServices)
	f.policy.WholeKinds, f.policy.MaxPercent, f.policy.MaxObjects = 2, 25, 1
	p := f.plan(twoMaps)
	f.guarded(p, apply.GuardKind, "no Service any more", "2 of 4 objects", "25 percent", "over 1 (spec.prune.maxObjects)")
	if again := f.plan(twoMaps); again.Guard.Message != p.Guard.Message {
		t.Errorf("the message flaps:\n%s\n%s", p.Guard.Message, again.Guard.Message)
	}
}

// A word that names a number is none for a plan that has grown since, and still one for a plan that shrank: a part was done.
func TestLaw3WordCountsForAsManyAsItNames(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps + "---\n" + twoServices)
	f.policy.MaxPercent = 10
	f.policy.Confirmed, f.policy.ConfirmedDeletes = true, 1
	f.guarded(f.plan(twoMaps), apply.GuardLimit, "2 objects would be deleted by now", "the word was for 1")
	f.policy.ConfirmedDeletes = 3
	p, _ := f.sync(twoMaps)
	f.want(p, "delete Service/a", "delete Service/b")
}

// The object that a plan would delete is gone, and somebody has made another of that name since: not ours to delete, label or not.
func TestLaw3DeleteMeetsTheUIDThatWasPlanned(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	p := f.plan(oneMap)
	f.want(p, "delete ConfigMap/b")
	copied := f.kubectl("get", "configmap", "b", "-o", "yaml")
	f.kubectl("delete", "configmap", "b")
	f.kubectl("create", "-f", f.write(copied))
	stranger := f.configMap("b").GetUID()
	f.run(p)
	if got := f.configMap("b").GetUID(); got != stranger {
		t.Errorf("the stranger's object has the UID %s, had %s", got, stranger)
	}
}

// Of somebody who took the label alone away, and of somebody who rewrote the managers, nothing is deleted.
func TestLaw3DeleteNeedsLabelAndManagerAtTheRequest(t *testing.T) {
	for name, change := range map[string][]string{
		"label":   {"label", "configmap", "b", apply.PartOfLabel + "-"},
		"manager": {"patch", "configmap", "b", "--type=json", "-p", `[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync(twoMaps)
			p := f.plan(oneMap)
			f.want(p, "delete ConfigMap/b")
			f.kubectl(change...)
			r, err := f.applier.Run(t.Context(), p)
			if err == nil || len(r.Failed()) != 1 {
				t.Fatalf("error %v, failed %v; want the delete to fail", err, r.Failed())
			}
			f.configMap("b")
		})
	}
}

// A file that was lost on its way into the repository looks like one that is empty on purpose. It matters where something would be deleted.
func TestLaw3NothingGoesBesideAHollowFile(t *testing.T) {
	f := newFixture(t)
	f.policy.HollowFiles = true
	f.sync(twoMaps)
	plan := func(stream string) *apply.Plan {
		t.Helper()
		set := f.set(stream)
		set.Hollow = []string{"b.yaml"}
		p, err := f.applier.Plan(t.Context(), f.unit, set, f.policy)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	f.guarded(plan(oneMap), apply.GuardHollow, "1 file is in Git without any object", "b.yaml", "ConfigMap/"+f.ns+"/b", "take them out of Git")
	if p := plan(twoMaps); p.Guard != nil {
		t.Errorf("a plan that deletes nothing is held: %s", p.Guard.Message)
	}
	f.policy.Confirmed = true
	f.run(plan(oneMap))
	f.gone("", "v1", "configmaps", "b")
}
