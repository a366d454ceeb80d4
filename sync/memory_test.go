package sync

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func TestSlim(t *testing.T) {
	full := &v1alpha1.Mooring{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", Namespace: "prod", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"}, CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec:   v1alpha1.MooringSpec{Source: v1alpha1.Source{URL: "https://git.example.com/a/b.git", Ref: v1alpha1.Ref{Branch: "main"}}, Path: "prod"},
		Status: v1alpha1.MooringStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Message: "it is"}}},
	}
	want := full.DeepCopy()
	want.ManagedFields = nil
	got, err := slim(full)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	// What comes again is in use: it is left as it is.
	labels := full.Labels
	if _, err := slim(full); err != nil {
		t.Error(err)
	}
	if labels["mark"] = "in the same map"; full.Labels["mark"] == "" {
		t.Error("its labels were made anew")
	}
	if o, err := slim("no object"); err != nil || o != "no object" {
		t.Errorf("%v, %v", o, err)
	}
}

func TestWhenMemoryIsGivenBack(t *testing.T) {
	const mb = 1 << 20
	type step struct {
		name    string
		heap    heap // allocated is what was since the step before
		letGo   int64
		rests   bool
		collect bool
	}
	for name, steps := range map[string][]step{
		"a start, and then rest": {
			{"at work", heap{allocated: 500 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"at rest", heap{allocated: 3 * mb, live: 200 * mb, objects: 210 * mb}, 80 * mb, true, true},
			{"what was known of objects goes", heap{allocated: mb, live: 100 * mb, objects: 100 * mb}, 0, false, true},
			{"nothing more", heap{allocated: 0, live: 90 * mb, objects: 91 * mb}, 0, false, false},
			{"nor later", heap{allocated: 0, live: 60 * mb, objects: 61 * mb}, 0, false, false},
		},
		"a day without rest": {
			{"at work", heap{allocated: 500 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"10 s", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"20 s", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"30 s", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"40 s", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"a minute", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 30 * mb, true, false},
			{"and more", heap{allocated: 20 * mb, live: 200 * mb, objects: 390 * mb}, 0, false, false},
			{"at rest", heap{allocated: 3 * mb, live: 200 * mb, objects: 210 * mb}, 10 * mb, true, true},
		},
		"a reading that is let go": {
			{"not yet seen", heap{allocated: 0, live: 120 * mb, objects: 121 * mb}, 0, false, false},
			{"as garbage", heap{allocated: 0, live: 120 * mb, objects: 190 * mb}, 0, false, true},
			{"what was known of it", heap{allocated: 0, live: 80 * mb, objects: 80 * mb}, 0, false, true},
			{"nothing more", heap{allocated: 0, live: 70 * mb, objects: 70 * mb}, 0, false, false},
		},
		"passes without changes": {
			{"a little", heap{allocated: mb, live: 60 * mb, objects: 61 * mb}, 0, false, false},
			{"and more", heap{allocated: mb, live: 60 * mb, objects: 62 * mb}, 0, true, false},
			{"and more", heap{allocated: mb, live: 60 * mb, objects: 63 * mb}, 0, false, false},
			{"enough to collect", heap{allocated: mb, live: 60 * mb, objects: 93 * mb}, 0, true, true},
			{"nothing more", heap{allocated: mb, live: 60 * mb, objects: 60 * mb}, 0, false, false},
		},
		"little by little": {
			{"some objects", heap{allocated: 2 * mb, live: 60 * mb, objects: 62 * mb}, 12 * mb, true, false},
			{"more objects", heap{allocated: 2 * mb, live: 60 * mb, objects: 64 * mb}, 12 * mb, true, false},
			{"that is worth it", heap{allocated: 2 * mb, live: 60 * mb, objects: 66 * mb}, 12 * mb, true, true},
			{"of which little was known", heap{allocated: 0, live: 50 * mb, objects: 50 * mb}, 0, false, false},
			{"nothing more", heap{allocated: 0, live: 60 * mb, objects: 60 * mb}, 0, false, false},
		},
		"much that is free and was not given back": {
			{"at rest", heap{allocated: 0, live: 100 * mb, objects: 100 * mb, free: 60 * mb}, 0, false, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rests, letGo, sum := 0, int64(0), uint64(0)
			at, s := 0, step{}
			k := &memoryKeeper{rest: func(idle bool) int64 {
				if rests++; idle == (s.heap.allocated < restBytes) {
					t.Errorf("step %d, %s: only what is idle: %t", at, s.name, idle)
				}
				return letGo
			}}
			for at, s = range steps {
				was, h := rests, s.heap
				letGo, sum = s.letGo, sum+h.allocated
				h.allocated = sum
				if got := k.look(h); got != s.collect || (rests > was) != s.rests {
					t.Errorf("step %d, %s: collects %t, want %t; puts to rest %t, want %t", at, s.name, got, s.collect, rests > was, s.rests)
				}
			}
		})
	}
	if h := readHeap(); h.allocated == 0 || h.live == 0 || h.objects == 0 {
		t.Errorf("the runtime tells %+v", h)
	}
}
