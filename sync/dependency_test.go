package sync_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// neighbours are the other Moorings of a world.
type neighbours []*v1alpha1.Mooring

func (n *neighbours) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	items := &list.(*v1alpha1.MooringList).Items
	for _, m := range *n {
		*items = append(*items, *m.DeepCopy())
	}
	return nil
}

// istio is a Mooring that is ready at commit a.
func istio() *v1alpha1.Mooring {
	m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Name: "istio", Namespace: "mesh", UID: "2", Generation: 1}}
	m.Spec.Source = v1alpha1.Source{URL: "https://git.example.com/mesh", Ref: v1alpha1.Ref{Branch: "main"}}
	m.Status.ObservedGeneration = 1
	m.Status.LastAppliedRevision = rev("a").String()
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonApplied}}
	return m
}

// dependent is a world with commit a in force, whose Mooring depends on the others. Git has b now.
func dependent(t *testing.T, others neighbours, on ...v1alpha1.Dependency) *world {
	t.Helper()
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.Syncer = sync.NewWith(sync.Stages{Source: w, Renderer: w, Checker: w, Surveyor: w, Applier: w, Reader: w, Moorings: &others})
	w.m.Spec.DependsOn, w.m.Generation = on, 2
	w.head = rev("b")
	return w
}

func TestDependencies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*v1alpha1.Mooring)
		on     v1alpha1.Dependency
		waits  string // empty when it does not
	}{
		{"at the commit", func(m *v1alpha1.Mooring) { m.Status.LastAppliedRevision = rev("b").String() }, v1alpha1.Dependency{Name: "istio"}, ""},
		{"at the commit, by another name", func(m *v1alpha1.Mooring) { m.Status.LastAppliedRevision = rev("b").String() }, v1alpha1.Dependency{Name: "istio", Namespace: "mesh"}, ""},
		{"at the commit before", func(*v1alpha1.Mooring) {}, v1alpha1.Dependency{Name: "istio"}, "mesh/istio, which has not this commit in force yet"},
		{"suspended", func(m *v1alpha1.Mooring) { m.Spec.Suspend = true }, v1alpha1.Dependency{Name: "istio"}, "is suspended at another commit"},
		{"of another branch", func(m *v1alpha1.Mooring) { m.Spec.Source.Ref.Branch = "istio" }, v1alpha1.Dependency{Name: "istio"}, ""},
		{"not ready", func(m *v1alpha1.Mooring) {
			m.Spec.Source.Ref.Branch = "istio"
			m.Status.Conditions[0].Status, m.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonCheckFailed
		}, v1alpha1.Dependency{Name: "istio"}, "is not ready (CheckFailed)"},
		{"changed a moment ago", func(m *v1alpha1.Mooring) { m.Generation, m.Status.LastAppliedRevision = 2, rev("b").String() }, v1alpha1.Dependency{Name: "istio"}, "was not looked at"},
		{"being deleted", func(m *v1alpha1.Mooring) { m.DeletionTimestamp = new(metav1.Now()) }, v1alpha1.Dependency{Name: "istio"}, "is being deleted"},
		{"missing", func(*v1alpha1.Mooring) {}, v1alpha1.Dependency{Name: "istoi"}, "mesh/istoi, which does not exist"},
		{"elsewhere", func(*v1alpha1.Mooring) {}, v1alpha1.Dependency{Name: "istio", Namespace: "shop"}, "shop/istio, which does not exist"},
		{
			"an expression that is true", func(m *v1alpha1.Mooring) { m.Status.LastAppliedRevision = rev("b").String() },
			v1alpha1.Dependency{Name: "istio", ReadyExpr: "dep.metadata.name == 'istio' && self.metadata.name == 'prod'"},
			"",
		},
		{
			"an expression that is false", func(m *v1alpha1.Mooring) { m.Status.LastAppliedRevision = rev("b").String() },
			v1alpha1.Dependency{Name: "istio", ReadyExpr: "size(dep.status.conditions) > 1"},
			"is not what spec.dependsOn[0].readyExpr asks for",
		},
		{
			"an expression about what is not there", func(m *v1alpha1.Mooring) { m.Status.LastAppliedRevision = rev("b").String() },
			v1alpha1.Dependency{Name: "istio", ReadyExpr: "dep.status.inventory.objects > 0"},
			"no such key: inventory",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := istio()
			tt.change(other)
			w := dependent(t, neighbours{other}, tt.on)
			out := w.pass(t)
			if tt.waits == "" {
				want(t, out, v1alpha1.ReasonApplied)
				w.inForce(t, "b")
				return
			}
			want(t, out, v1alpha1.ReasonDependencyNotReady)
			message := report.Message(out)
			for _, part := range []string{rev("b").String() + " waits: for Mooring ", tt.waits, rev("a").String() + " stays in force"} {
				if !strings.Contains(message, part) {
					t.Errorf("the message lacks %q: %s", part, message)
				}
			}
			if w.lastPlanned() != "a" {
				t.Errorf("planned %v: what is in force is kept so", w.planned)
			}
			if len(out.Awaits) != 1 {
				t.Errorf("waits for %v", out.Awaits)
			}
		})
	}
}

// What is in force is nobody's to hold, whatever becomes of the others.
func TestDependencyDoesNotHoldWhatIsInForce(t *testing.T) {
	w := dependent(t, nil, v1alpha1.Dependency{Name: "istio"})
	w.head = rev("a")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func TestDependenciesInACircle(t *testing.T) {
	a, b := istio(), istio()
	b.Name, b.UID = "base", types.UID("3")
	a.Spec.DependsOn = []v1alpha1.Dependency{{Name: "base"}}
	b.Spec.DependsOn = []v1alpha1.Dependency{{Name: "prod", Namespace: "mesh"}}
	w := dependent(t, neighbours{a, b}, v1alpha1.Dependency{Name: "istio"})
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonDependencyNotReady)
	if got := report.Message(out); !strings.Contains(got, "mesh/prod → mesh/istio → mesh/base → mesh/prod") {
		t.Errorf("the message does not tell the way round: %s", got)
	}
	b.Spec.DependsOn = []v1alpha1.Dependency{{Name: "base"}} // a circle of others is theirs
	w = dependent(t, neighbours{a, b}, v1alpha1.Dependency{Name: "istio"})
	if got := report.Message(w.pass(t)); strings.Contains(got, "circle") {
		t.Errorf("a circle of others: %s", got)
	}
}

func TestExpressionThatDoesNotCompile(t *testing.T) {
	for expression, says := range map[string]string{
		"dep.status ==": "spec.dependsOn[0].readyExpr does not compile", "other.status": "undeclared reference to 'other'", "'ready'": "gives a string, want true or false",
	} {
		w := dependent(t, neighbours{istio()}, v1alpha1.Dependency{Name: "istio", ReadyExpr: expression})
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonCheckFailed)
		if got := report.Message(out); !strings.Contains(got, says) || !strings.Contains(got, "edit the Mooring") {
			t.Errorf("%s: %s", expression, got)
		}
	}
}
