package crash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/proof/witness"
)

// A proof that finds nothing may be one that cannot. Here is a run in which all is well, and then done by hand, one after the other, what a
// wrong agent would do. The judges name each of them.
func TestFaultsAreFound(t *testing.T) {
	s := newStage(t)
	r := newRun(t, s, rand.New(rand.NewPCG(1, 1)))
	r.play()
	if faults := r.judge(); len(faults) > 0 {
		t.Fatalf("a run in which nothing is wrong has faults:\n%s", strings.Join(faults, "\n"))
	}
	s.agent.Kill() // it would mend what is done now
	r.patience = time.Second

	wanted := r.wantedConfigMap()
	for _, planted := range []struct {
		name string
		do   func()
		want string // the beginning of a fault
	}{
		{"label lost", func() {
			r.patch(wanted, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, apply.PartOfLabel))
		}, "untracked: ConfigMap/" + r.home.ns + "/" + wanted.GetName()},
		{"field changed", func() {
			r.patch(wanted, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}},"data":{"planted":"x"}}`, apply.PartOfLabel, wanted.GetLabels()[apply.PartOfLabel]))
		}, "the end state is not that of a clean apply"},
		{"field owned by another", func() {
			r.patch(wanted, `{"data":{"planted":null}}`)
			r.applyAs("another", wanted.GetName(), wanted.GetLabels(), wanted.Object["data"])
		}, "the end state is not that of a clean apply"},
		{"deleted and made anew", func() {
			r.delete(wanted)
			r.applyAs(apply.FieldManager, wanted.GetName(), wanted.GetLabels(), wanted.Object["data"])
		}, "wrongly deleted after the kill: DELETED ConfigMap/" + r.home.ns + "/" + wanted.GetName()},
		{"left behind", func() {
			r.applyAs(apply.FieldManager, "left", wanted.GetLabels(), nil)
		}, "left over: ConfigMap/" + r.home.ns + "/left"},
		{"bystander touched", func() {
			r.applyAs("another", "somebodys", map[string]string{"touched": "yes"}, nil)
		}, "disturbed: ConfigMap/" + r.home.ns + "/somebodys"},
	} {
		t.Run(planted.name, func(t *testing.T) {
			planted.do()
			if err := r.witness.CaughtUp(within(t, patience), r.here); err != nil {
				t.Fatal(err)
			}
			faults := r.judge()
			if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, planted.want) }) {
				t.Errorf("the judges do not say %q; they say:\n%s", planted.want, strings.Join(faults, "\n"))
			}
		})
	}
	s.restart(t)
	r.end()
}

// wantedConfigMap gives one that the last commit has.
func (r *run) wantedConfigMap() *unstructured.Unstructured {
	r.Helper()
	for _, o := range r.list(r.home) {
		if o.GetKind() == "ConfigMap" && strings.HasPrefix(o.GetName(), "settings-") && witness.Ours(o) {
			return o
		}
	}
	r.Fatal("the last commit has no ConfigMap")
	return nil
}

func (r *run) patch(o *unstructured.Unstructured, patch string) {
	r.Helper()
	if err := r.Client().Patch(r.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner("faulty")); err != nil {
		r.Fatal(err)
	}
}

func (r *run) delete(o *unstructured.Unstructured) {
	r.Helper()
	if err := r.Client().Delete(r.Context(), o); err != nil {
		r.Fatal(err)
	}
}

func (r *run) applyAs(manager client.FieldOwner, name string, labels map[string]string, data any) {
	r.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetNamespace(r.home.ns)
	o.SetName(name)
	o.SetLabels(labels)
	if data != nil {
		o.Object["data"] = data
	}
	if err := r.Client().Apply(r.Context(), client.ApplyConfigurationFromUnstructured(o), manager, client.ForceOwnership); err != nil {
		r.Fatal(err)
	}
}
