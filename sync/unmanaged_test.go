package sync_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// peopled is a world whose Mooring wants a VirtualService for the host reviews, and in which somebody else may have one, too.
type peopled struct {
	*world
	living []*unstructured.Unstructured
	reads  int
	fail   error
}

func newPeopled() *peopled {
	w := &peopled{world: newWorld()}
	w.Syncer = sync.NewWith(sync.Stages{Source: w, Renderer: w, Checker: w, Surveyor: w, Applier: w, Reader: w, Owners: w})
	return w
}

func (w *peopled) Render(ctx context.Context, fsys fs.FS, dir string) (*render.Set, error) {
	s, err := w.world.Render(ctx, fsys, dir)
	if err == nil {
		s.Objects = append(s.Objects, render.Object{Content: render.ContentOf(routeOf("reviews"))})
	}
	return s, err
}

func (w *peopled) Surroundings(context.Context) (*apply.Surroundings, error) {
	w.reads++
	if w.fail != nil {
		return nil, w.fail
	}
	return &apply.Surroundings{Objects: w.living}, nil
}

func (w *peopled) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.MooringList).Items = []v1alpha1.Mooring{*w.m}
	return nil
}

// routeOf is a VirtualService for the host reviews.
func routeOf(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": map[string]any{"name": name, "namespace": "apps"},
		"spec": map[string]any{"hosts": []any{"reviews"}},
	}}
}

// What nobody manages is found in what the check of a commit reads, and looked for anew once an hour: at rest nothing is read.
func TestUnmanagedIsFoundInWhatIsReadAnyway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPeopled()
		w.living = []*unstructured.Unstructured{routeOf("reviews"), routeOf("hotfix")}
		expect := func(when string, count, reads int) {
			t.Helper()
			out := w.pass(t)
			want(t, out, v1alpha1.ReasonApplied)
			if got := int(w.m.Status.UnmanagedCount); !out.LookedBeside || got != count || w.reads != reads {
				t.Errorf("%s: looked %v, %d unmanaged, %d readings in all; want %d and %d", when, out.LookedBeside, got, w.reads, count, reads)
			}
		}
		expect("the first commit: what it wants is about to be taken over", 1, 1)
		if w.m.Status.UnmanagedCount == 0 {
			t.FailNow()
		}
		if e := w.m.Status.Unmanaged[0]; e.Object != "VirtualService/apps/hotfix" || e.BearsOn != "reviews.apps.svc.cluster.local" || e.Why == "" {
			t.Errorf("the status has %+v", e)
		}
		w.living = nil
		for range 11 {
			time.Sleep(5 * time.Minute)
			expect("at rest", 1, 1)
		}
		time.Sleep(5 * time.Minute)
		expect("after an hour", 0, 2)
		time.Sleep(5 * time.Minute)
		expect("at rest again", 0, 2)

		w.living = []*unstructured.Unstructured{routeOf("hotfix")}
		w.head = rev("b")
		expect("another commit", 1, 3)

		w.fail = errors.New("the API server is away")
		time.Sleep(time.Hour)
		expect("what cannot be read says nothing", 1, 4)
		expect("and is no reason to ask again at once", 1, 4)

		w.fail, w.living = nil, nil
		ask := func(value string) { w.m.Annotations = map[string]string{v1alpha1.ReconcileAnnotation: value} }
		ask("somebody")
		expect("a person asks, too soon after a reading", 1, 4)
		time.Sleep(5 * time.Second)
		expect("the next pass owes it", 0, 5)
		w.living = []*unstructured.Unstructured{routeOf("hotfix")}
		time.Sleep(5 * time.Minute)
		expect("once", 0, 5)
		ask("somebody else")
		expect("a person asks", 1, 6)
		time.Sleep(5 * time.Minute)
		w.head = rev("c")
		ask("with a commit")
		expect("a person asks, and the check reads", 1, 7)
		time.Sleep(5 * time.Minute)
		expect("that was once", 1, 7)
	})
}

// An outcome that did not look leaves the status as it was.
func TestUnmanagedStaysInTheStatus(t *testing.T) {
	m := newWorld().m
	m.Status.Unmanaged, m.Status.UnmanagedCount = []v1alpha1.UnmanagedEntry{{Object: "VirtualService/apps/hotfix"}}, 1
	if s := report.Status(m, report.Outcome{Reason: v1alpha1.ReasonFetchFailed, Err: errors.New("no answer")}); s.UnmanagedCount != 1 || len(s.Unmanaged) != 1 {
		t.Errorf("it was forgotten: %+v", s)
	}
	if s := report.Status(m, report.Outcome{Reason: v1alpha1.ReasonFetchFailed, Err: errors.New("no answer"), LookedBeside: true}); s.UnmanagedCount != 0 || len(s.Unmanaged) != 0 {
		t.Errorf("it was not taken out: %+v", s)
	}
}
