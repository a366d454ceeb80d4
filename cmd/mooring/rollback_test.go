package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/kube"
)

// Who pins a Mooring, or lets it go, does so for what they saw. A person who edits it at the same moment keeps what they wrote; the agent, which writes its status all the
// time, is in nobody's way.
func TestPinGivesWayToAnEdit(t *testing.T) {
	server := kube.Start(t)
	c, err := client.NewWithWatch(server.Config(), client.Options{Scheme: sync.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ours := &cluster{WithWatch: c}
	made := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "prod"}}
	made.Spec.Source.URL, made.Spec.Source.Ref.Branch, made.Spec.Path = "https://git.example.com/config.git", "main", "prod"
	if err := c.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	now := func() *v1alpha1.Mooring {
		t.Helper()
		m := &v1alpha1.Mooring{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(made), m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	pin := func(digit string) *v1alpha1.Pin {
		return &v1alpha1.Pin{Revision: "main@sha1:" + strings.Repeat(digit, 40)}
	}
	hold := func(m *v1alpha1.Mooring, at *v1alpha1.Pin) error {
		return ours.askUnedited(t.Context(), m, func() { m.Spec.Pin = at })
	}
	for _, c := range []struct {
		name               string
		before, edit, ours *v1alpha1.Pin
	}{
		{"both pin", nil, pin("b"), pin("a")},
		{"they pin another and we let go", pin("a"), pin("b"), nil},
		{"they let go and we pin", pin("a"), nil, pin("b")},
		{"both the same", nil, pin("a"), pin("a")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := hold(now(), c.before); err != nil {
				t.Fatal(err)
			}
			seen := now()
			if err := hold(now(), c.edit); err != nil {
				t.Fatal(err)
			}
			err := hold(seen, c.ours)
			if err == nil || !strings.Contains(err.Error(), "somebody has edited it") {
				t.Errorf("the error is %v", err)
			}
			if got := now().Spec.Pin; (got == nil) != (c.edit == nil) || got != nil && *got != *c.edit {
				t.Errorf("the pin is %+v, want %+v", got, c.edit)
			}
		})
	}
	t.Run("the agent writes", func(t *testing.T) {
		seen := now()
		theirs := seen.DeepCopy()
		theirs.Status.LastAttemptedRevision = "main@sha1:" + strings.Repeat("c", 40)
		if err := c.Status().Update(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		if err := hold(seen, pin("d")); err != nil || now().Spec.Pin == nil || *now().Spec.Pin != *pin("d") || now().Status.LastAttemptedRevision == "" {
			t.Errorf("%v; the pin is %+v", err, now().Spec.Pin)
		}
	})
}
