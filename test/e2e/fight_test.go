package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/proof"
)

// operator undoes each correction of a ConfigMap within milliseconds, until it is stopped. It gives how often it did.
func (s *site) operator(name string) (stop func() int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var undone atomic.Int64
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
			if err := s.w.Client().Get(ctx, client.ObjectKeyFromObject(cm), cm); err == nil && cm.Data["value"] != "mine" {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"mine"}}`))
				if s.w.Client().Patch(ctx, cm, patch, client.FieldOwner("operator")) == nil {
					undone.Add(1)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	stop = func() int {
		cancel()
		done.Wait()
		return int(undone.Load())
	}
	s.t.Cleanup(func() { stop() })
	return stop
}

// TestFightIsNamedAndSlowedDown lets another controller undo each correction.
func TestFightIsNamedAndSlowedDown(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("fought=1 other=1"))
	u := s.mooring("prod", every(time.Second))
	u.inForce(s.head())
	stop := s.operator("fought")
	m := u.until("there is a fight", func(m *mooring) error {
		if len(m.Status.Fights) != 1 {
			return fmt.Errorf("fights: %v", m.Status.Fights)
		}
		return nil
	})
	f := m.Status.Fights[0]
	if f.Object != "ConfigMap/"+s.ns+"/fought" || f.Field != "/data/value" || f.Manager != "operator" || f.Corrections < 4 {
		t.Errorf("the fight is %+v", f)
	}
	names := "mooring and operator undo each other at /data/value of ConfigMap/" + s.ns + "/fought"
	if d := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrifted); d.Status != metav1.ConditionTrue || d.Reason != v1alpha1.ReasonFight || !strings.Contains(d.Message, names) {
		t.Errorf("Drifted is %+v", d)
	}
	u.event(v1alpha1.ReasonFight, names, "put back 4 times")
	if got := scrape(t, w.agent).Get("mooring_fights", u.series()...); got != 1 {
		t.Errorf("mooring_fights is %v, want 1", got)
	}

	// While it goes on the other object is put back as always, and nothing spins.
	began, before := time.Now(), scrape(t, w.agent).Get("mooring_passes_total", u.series()...)
	s.tamper("other", "by-hand")
	s.becomes("fought=mine other=1")
	passes(t, w.agent, 3, u)
	s.mustShell("mooring get prod -n NS", "Fights", "/data/value", "operator")
	s.mustShell("mooring get drift prod -n NS", "Correct (Fight)")
	if out := s.shell("mooring diff prod -n NS", 1); lacks(out, []string{"a fight with operator over /data/value: put back ", "next at "}) != "" {
		t.Errorf("mooring diff does not say that it waits:\n%s", out)
	}
	took := time.Since(began)
	// One by each second, one for each edit, of which there are few as long as nothing is put back; and those of a loaded machine.
	if made := scrape(t, w.agent).Get("mooring_passes_total", u.series()...) - before; made > 10+2*took.Seconds() {
		t.Errorf("%v passes in %s", made, took)
	}
	fought := time.Since(f.Since.Time)
	undone := stop()
	if most := 5 + int(fought/(15*time.Second)); undone > most {
		t.Errorf("it was undone %d times in %s, so it was put back as often; want at most %d", undone, fought, most)
	}
	// The other one has stopped: it is put back in its turn, and stays so.
	s.becomes("fought=1 other=1")
	if !proof.Full() {
		return // the end of it takes ten minutes; sync's own tests have a clock that is faster
	}
	if _, err := w.Until(within(t, 12*time.Minute), u.Key, "the fight is over", func(m *mooring) error {
		if len(m.Status.Fights) > 0 {
			return fmt.Errorf("fights: %v", m.Status.Fights)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	u.event("FightOver", "operator")
	s.tamper("fought", "by-hand")
	s.becomes("fought=1 other=1")
}

// randomEdit is one edit that a test makes, and what must be told of it.
type randomEdit struct{ object, command, told string }

// editor makes edits by chance, each by a manager of its own. An object is edited once in a round.
type editor struct {
	*rand.Rand
	maps  int
	made  int
	blind map[string]int // how often a field was removed, by nobody's name: too often would be a fight
}

func (e *editor) edit() randomEdit {
	e.made++
	name, by := fmt.Sprintf("m%d", e.IntN(e.maps)), fmt.Sprintf("editor-%d", e.made)
	object, key := "ConfigMap/NS/"+name, fmt.Sprintf("k%d", e.IntN(4))
	patch := func(format string, args ...any) string {
		return fmt.Sprintf("kubectl -n NS patch configmap %s --type=merge --field-manager=%s -p '%s'", name, by, fmt.Sprintf(format, args...))
	}
	kind := e.IntN(10)
	if kind < 4 { // it leaves no name
		field := object + []string{" /data/" + key, " /metadata/labels", "", " /metadata/annotations"}[kind]
		if e.blind[field]++; e.blind[field] > 2 {
			kind = 9
		}
	}
	switch kind {
	case 0:
		return randomEdit{name, patch(`{"data":{%q:null}}`, key), fmt.Sprintf("%s /data/%s: , want git, by  ", object, key)}
	case 1:
		return randomEdit{name, patch(`{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`), object + " /metadata/labels: , want {…}, by  "}
	case 2:
		return randomEdit{name, fmt.Sprintf("kubectl -n NS delete configmap %s", name), object + " : absent, want present, by  "}
	case 3:
		return randomEdit{name, patch(`{"metadata":{"annotations":null}}`), object + " /metadata/annotations: , want {…}, by  "}
	case 4, 5:
		return randomEdit{name, patch(`{"metadata":{"annotations":{"note":%q}}}`, by), fmt.Sprintf("%s /metadata/annotations/note: %s, want git, by %s Update", object, by, by)}
	case 6:
		deploy := fmt.Sprintf("w%d", e.IntN(3))
		return randomEdit{
			deploy, fmt.Sprintf("kubectl -n NS patch deployment %s --type=merge --field-manager=%s -p '{\"spec\":{\"replicas\":%d}}'", deploy, by, e.made+2),
			fmt.Sprintf("Deployment/NS/%s /spec/replicas: %d, want 1, by %s Update", deploy, e.made+2, by),
		}
	default:
		return randomEdit{name, patch(`{"data":{%q:%q}}`, key, by), fmt.Sprintf("%s /data/%s: %s, want git, by %s Update", object, key, by, by)}
	}
}

// round of edits of different objects.
func (e *editor) round(n int) []randomEdit {
	var all []randomEdit
	for len(all) < n {
		edit := e.edit()
		if !slices.ContainsFunc(all, func(other randomEdit) bool { return other.object == edit.object }) {
			all = append(all, edit)
		}
	}
	return all
}

// TestRandomEdits finds each of many edits put back, none missed and none told twice, and each with who made it.
func TestRandomEdits(t *testing.T) {
	edits, together := 32, 8
	if proof.Full() {
		edits = 500
	}
	seed := proof.Seed(t)
	e := &editor{Rand: rand.New(rand.NewPCG(seed, 0)), maps: 30, blind: map[string]int{}}
	content := files{"w0.yaml": deployment("w0", "example.com/main:1"), "w1.yaml": deployment("w1", "example.com/main:1"), "w2.yaml": deployment("w2", "example.com/main:1")}
	for i := range e.maps {
		name := fmt.Sprintf("m%d", i)
		content[name+".yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: NS, annotations: {note: git}}\ndata: {k0: git, k1: git, k2: git, k3: git}\n", name)
	}
	w := shared(t)
	s := newSite(t, w.World, content)
	u := s.mooring("prod", every(2*time.Second))
	u.inForce(s.head())
	made := 0
	for made < edits {
		round := e.round(min(together, edits-made))
		var want []string
		var lines []string
		for _, edit := range round {
			want = append(want, strings.ReplaceAll(edit.told, "NS", s.ns))
			lines = append(lines, edit.command)
		}
		s.mustShell(strings.Join(lines, " & ") + " & wait")
		slices.Sort(want)
		u.until(fmt.Sprintf("the edits %d to %d are put back", made, made+len(round)), func(m *mooring) error {
			m.Status.Corrections = m.Status.Corrections[:min(len(m.Status.Corrections), len(round))]
			return lists(corrected, want)(m)
		})
		made += len(round)
	}
	if got := scrape(t, w.agent).Get("mooring_drift_corrections_total", u.series()...); got != float64(edits) {
		t.Errorf("%v corrections of %d edits", got, edits)
	}
	s.mustShell("mooring diff prod -n NS")
	if m := u.sync(); len(m.Status.Fights) > 0 || m.Status.DriftCount > 0 {
		t.Errorf("fights %v, drift %v", m.Status.Fights, driftOf(m))
	}
}
