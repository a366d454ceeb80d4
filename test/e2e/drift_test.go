package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// tampered is what the tests of drift keep in Git: something for each way to change it.
func tampered() files {
	noted := strings.Replace(configMap("noted", "1"), "namespace: NS", "namespace: NS, annotations: {note: git}", 1)
	return all(some("edited=1 unlabelled=1 deleted=1 quiet=1"), files{
		"noted.yaml":  noted,
		"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: NS}\nstringData: {password: hunter2}\n",
		"web.yaml":    deployment("web", "example.com/main:1"),
		"scaled.yaml": deployment("scaled", "example.com/main:1"),
		"hpa.yaml": `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled, namespace: NS}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}, maxReplicas: 9}
`,
	})
}

// tampering are the ways, and what has to be told of each; what is no drift is told nothing of.
var tampering = []struct{ command, told string }{
	{`KUBE_EDITOR="sed -i 's/value: .*/value: x/'" kubectl -n NS edit configmap edited`, "ConfigMap/NS/edited /data/value: x, want 1, by kubectl-edit Update"},
	{`kubectl -n NS label configmap unlabelled applyset.kubernetes.io/part-of-`, "ConfigMap/NS/unlabelled /metadata/labels: , want {…}, by  "},
	{`kubectl -n NS delete configmap deleted`, "ConfigMap/NS/deleted : absent, want present, by  "},
	{`kubectl -n NS annotate configmap noted note=mine --overwrite --field-manager=somebody`, "ConfigMap/NS/noted /metadata/annotations/note: mine, want git, by somebody Update"},
	{`kubectl -n NS patch secret secret --type=merge --field-manager=thief -p '{"data":{"password":"c3dvcmRmaXNo"}}'`, "Secret/NS/secret /data/password: *** (before), want *** (after), by thief Update"},
	{`kubectl -n NS scale deployment web --replicas=5`, "Deployment/NS/web /spec/replicas: 5, want 1, by kubectl Update"},
	{`kubectl -n NS patch deployment web --subresource=status --type=merge --field-manager=kubelet -p '{"status":{"observedGeneration":9,"replicas":5}}'`, ""},
	{`kubectl -n NS patch deployment scaled --subresource=scale --type=merge --field-manager=horizontal-pod-autoscaler -p '{"spec":{"replicas":7}}'`, ""},
}

// timeless is the object that is scaled: for a write to the scale subresource, Kubernetes notes the manager and no time.
func timeless(object string) bool { return strings.HasPrefix(object, "Deployment/") }

// toldOf all ways, sorted.
func (s *site) toldOf() []string {
	var all []string
	for _, way := range tampering {
		if way.told != "" {
			all = append(all, strings.ReplaceAll(way.told, "NS", s.ns))
		}
	}
	slices.Sort(all)
	return all
}

// line writes drift as the tests tell it. The value of the label of the ApplySet is another one in each test.
func line(object, field, live, want, manager, operation string) string {
	if strings.HasPrefix(want, "{") {
		want = "{…}"
	}
	return fmt.Sprintf("%s %s: %s, want %s, by %s %s", object, field, live, want, manager, operation)
}

func driftOf(m *mooring) []string {
	var all []string
	for _, e := range m.Status.Drift {
		all = append(all, line(e.Object, e.Field, e.Live, e.Want, e.Manager, e.Operation))
	}
	slices.Sort(all)
	return all
}

func corrected(m *mooring) []string {
	var all []string
	for _, e := range m.Status.Corrections {
		all = append(all, line(e.Object, e.Field, e.Live, e.Want, e.Manager, e.Operation))
	}
	slices.Sort(all)
	return all
}

func inMode(mode v1alpha1.DriftMode) func(*mooring) {
	return func(m *mooring) {
		every(2 * time.Second)(m)
		m.Spec.Drift = &v1alpha1.Drift{Mode: mode}
	}
}

// lists is a condition for until.
func lists(got func(*mooring) []string, want []string) func(*mooring) error {
	return func(m *mooring) error {
		if diff := cmp.Diff(want, got(m)); diff != "" {
			return fmt.Errorf("the status (-want +got):\n%s", diff)
		}
		return nil
	}
}

// TestDriftIsCorrectedAndNamed changes objects in every way and finds each put back, and who had changed it.
func TestDriftIsCorrectedAndNamed(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, tampered())
	u := s.mooring("prod", inMode(v1alpha1.DriftCorrect))
	u.inForce(s.head())
	began := time.Now().Truncate(time.Second)
	for _, way := range tampering {
		s.mustShell(way.command)
	}
	m := u.until("everything is put back and named", lists(corrected, s.toldOf()))
	for _, e := range m.Status.Corrections {
		if e.CorrectedAt.Time.Before(began) || e.Manager != "" && !timeless(e.Object) && (e.ChangedAt == nil || e.ChangedAt.Time.Before(began) || e.ChangedAt.After(e.CorrectedAt.Time)) {
			t.Errorf("%s %s was changed at %v and put back at %s", e.Object, e.Field, e.ChangedAt, e.CorrectedAt)
		}
	}
	s.want("edited=1 unlabelled=1 deleted=1 quiet=1 noted=1")
	u.event("DriftCorrected", "ConfigMap/"+s.ns+"/edited (/data/value by kubectl-edit (Update, 20")
	if got := scrape(t, w.agent).Get("mooring_drift_corrections_total", u.series()...); got != 6 {
		t.Errorf("mooring_drift_corrections_total is %v, want 6", got)
	}
	s.mustShell("mooring get prod -n NS", "Put back lately", "/spec/replicas", "kubectl (Update)")
	s.mustShell("mooring get drift prod -n NS", "Nothing differs")
	s.mustShell("mooring diff prod -n NS")
	if m.Status.DriftCount != 0 {
		t.Errorf("drift: %v", driftOf(m))
	}
}

// TestAlarmChangesNothing changes objects in every way, then Git.
func TestAlarmChangesNothing(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, tampered())
	u := s.mooring("prod", inMode(v1alpha1.DriftAlarm))
	u.inForce(s.head())
	for _, way := range tampering {
		s.mustShell(way.command)
	}
	m := u.until("everything is named", lists(driftOf, s.toldOf()))
	before := s.versions()
	d := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrifted)
	if d.Status != metav1.ConditionTrue || d.Reason != v1alpha1.ReasonAlarm || lacks(d.Message, []string{"of ", "/" + s.ns + "/", "spec.drift.mode"}) != "" {
		t.Errorf("Drifted is %+v", d)
	}
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	if got := scrape(t, w.agent).Get("mooring_drifted_objects", u.series()...); got != 6 {
		t.Errorf("mooring_drifted_objects is %v, want 6", got)
	}
	s.mustShell("mooring get drift prod -n NS", "Deployment/"+s.ns+"/web", "/spec/replicas", "kubectl (Update)", "Alarm", "*** (before)", "   unknown   ", "audit log")
	if diff := cmp.Diff(s.toldOf(), s.diffTells()); diff != "" {
		t.Errorf("mooring diff tells something else (-want +got):\n%s", diff)
	}
	passes(t, w.agent, 2, u)
	s.untouched(before)
	events := slices.DeleteFunc(u.events(), func(e world.Event) bool { return e.Reason != "DriftDetected" })
	if len(events) == 0 || len(events) > len(s.toldOf()) || strings.Contains(fmt.Sprint(events), "c3dvcmRmaXNo") || !strings.Contains(fmt.Sprint(events), "by ") {
		t.Errorf("Events: %v", events)
	}

	// A commit changes one object that nobody touched, and one that somebody did; the others stay as they are.
	u.inForce(s.commit(some("quiet=2 edited=2")))
	s.want("edited=2 unlabelled=1 quiet=2 noted=1")
	left := slices.DeleteFunc(s.toldOf(), func(line string) bool { return strings.Contains(line, "/edited ") })
	sinceOf := func(m *mooring) string { return m.Status.Drift[0].Since.String() }
	if now := u.until("what is left is named", lists(driftOf, left)); sinceOf(now) > sinceOf(m) && now.Status.Drift[0].Object == m.Status.Drift[0].Object {
		t.Errorf("since %s, before %s", sinceOf(now), sinceOf(m))
	}
	u.edit(inMode(v1alpha1.DriftCorrect))
	u.until("all is put back", lists(driftOf, nil))
	s.want("edited=2 unlabelled=1 deleted=1 quiet=2 noted=1")
}

// diffTells what mooring diff says of drift, as the status does.
func (s *site) diffTells() []string {
	s.t.Helper()
	var found []struct {
		Steps []struct {
			Drift  string
			Object struct{ Kind, Namespace, Name string }
			Fields []struct {
				Path, Manager, Operation string
				Live, Want               any
				ChangedAt                *time.Time
			}
		}
	}
	if err := json.Unmarshal([]byte(s.shell("mooring diff prod -n NS -o json", 1)), &found); err != nil {
		s.t.Fatal(err)
	}
	text := func(v any) string {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			return "{"
		}
		if v == nil {
			return ""
		}
		return fmt.Sprint(v)
	}
	var all []string
	for _, step := range found[0].Steps {
		object := step.Object.Kind + "/" + step.Object.Namespace + "/" + step.Object.Name
		if step.Drift == "deleted" {
			all = append(all, line(object, "", "absent", "present", "", ""))
		}
		for _, f := range step.Fields {
			all = append(all, line(object, f.Path, text(f.Live), text(f.Want), f.Manager, f.Operation))
			if f.Manager != "" && !timeless(object) && f.ChangedAt == nil {
				s.t.Errorf("%s %s: no time", object, f.Path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestAlarmSurvivesARestart changes objects while no agent runs, with and without a new commit.
func TestAlarmSurvivesARestart(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1 b=1 c=1 d=1"))
	u := s.mooring("prod", inMode(v1alpha1.DriftAlarm))
	u.inForce(s.head())
	told := func(names string) []string {
		var all []string
		for _, name := range strings.Fields(names) {
			all = append(all, line("ConfigMap/"+s.ns+"/"+name, "/data/value", "by-hand", "1", "somebody", "Update"))
		}
		return all
	}
	s.tamper("a", "by-hand")
	since := u.until("a is named", lists(driftOf, told("a"))).Status.Drift[0].Since
	restart := func(meanwhile func()) {
		if err := agent.Stop(); err != nil {
			t.Error(err)
		}
		meanwhile()
		agent = startAgent(t, w, world.AgentOptions{})
	}
	restart(func() { s.tamper("b", "by-hand") })
	m := u.until("b is named", lists(driftOf, told("a b")))
	if !m.Status.Drift[0].Since.Equal(since) {
		t.Errorf("a differs since %s, before the restart it was %s", m.Status.Drift[0].Since, since)
	}
	var newer string
	restart(func() { s.tamper("c", "by-hand"); newer = s.commit(some("d=2")) })
	u.inForce(newer)
	u.until("c is named", lists(driftOf, told("a b c")))
	s.want("a=by-hand b=by-hand c=by-hand d=2")
}
