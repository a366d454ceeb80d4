package sync_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// world is a Syncer whose stages are played by the test: what they answer is set in its fields, what they were
// asked is counted. The stages themselves are tested against real parts in their own packages and end to end.
type world struct {
	*sync.Syncer
	m *v1alpha1.Mooring

	head       repos.Revision
	resolveErr error
	renderErr  map[repos.Commit]error
	findings   map[repos.Commit][]check.Finding
	gaps       []check.Gap
	checkErr   error
	surveyErr  error
	configMaps map[string]map[string]string
	others     map[string]*v1alpha1.Mooring
	planErr    error
	guard      *apply.Guard
	runErr     error
	changes    int
	unhealthy  []apply.Health
	panics     string
	same       bool   // every commit renders to what a does
	sickAt     string // the commit that is not healthy
	beforePlan func()
	diverged   bool
	secret     map[string][]byte // for Git; a name and a password when nil
	propose    func(context.Context, forge.Options, forge.Proposal) (forge.PullRequest, error)
	verifyErr  map[repos.Commit]error
	keys       map[string][]byte // of the Secret git-keys; nil for no such Secret
	pushErr    error
	pushed     []string
	relates    int

	asked             repos.Revision // whose snapshot was asked for last
	recursed          bool           // with its submodules
	resolves, renders int
	verifies, secrets int
	planned           []string // the object names of each set that was planned for
	policies          []apply.Policy
	runs              int
	requests          []check.Request
}

func newWorld() *world {
	w := &world{
		head:      rev("a"),
		renderErr: map[repos.Commit]error{},
		findings:  map[repos.Commit][]check.Finding{},
	}
	w.m = &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "mesh", UID: types.UID("1"), Generation: 1}}
	w.m.Spec.Source = v1alpha1.Source{URL: "https://git.example.com/mesh.git", Ref: v1alpha1.Ref{Branch: "main"}}
	w.m.Default()
	w.Syncer = w.restarted()
	return w
}

// restarted is another agent over the same world: it remembers nothing.
func (w *world) restarted() *sync.Syncer {
	return sync.NewWith(sync.Stages{Source: w, Renderer: w, Checker: w, Surveyor: w, Applier: w, Reader: w, Pusher: w, Proposer: w.propose})
}

// rev makes a revision whose commit id is one repeated digit.
func rev(digit string) repos.Revision {
	return repos.Revision{Ref: "main", Commit: repos.Commit(strings.Repeat(digit, 40))}
}

func (w *world) Resolve(context.Context, repos.Remote, repos.Ref) (repos.Revision, error) {
	w.resolves++
	return w.head, w.resolveErr
}

func (w *world) Verify(_ context.Context, _ repos.Remote, r repos.Revision, _ repos.VerifyMode, _ *repos.Signers) (repos.Signed, error) {
	w.verifies++
	return repos.Signed{}, w.verifyErr[r.Commit]
}

func (w *world) Snapshot(_ context.Context, from repos.Remote, r repos.Revision) (*repos.Snapshot, error) {
	w.asked, w.recursed = r, from.RecurseSubmodules
	return &repos.Snapshot{Revision: r}, nil
}

// Render makes one object named for the commit. The fake snapshots hold no files, so the commit is found by the
// revision that was asked for last.
func (w *world) Render(_ context.Context, fsys fs.FS, dir string) (*render.Set, error) {
	w.renders++
	commit := w.asked.Commit
	if w.panics == "render" {
		panic("index out of range")
	}
	if err := w.renderErr[commit]; err != nil {
		return nil, err
	}
	if w.same {
		commit = rev("a").Commit
	}
	return set(string(commit[:1]) + strings.Trim(dir, ".")), nil
}

func set(name string) *render.Set {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "apps"},
	}}
	return &render.Set{Objects: []render.Object{{Content: render.ContentOf(u)}}}
}

func (w *world) Check(_ context.Context, q check.Request) (*check.Report, error) {
	w.requests = append(w.requests, q)
	return &check.Report{Findings: w.findings[repos.Commit(strings.Repeat(q.Set.Objects[0].GetName()[:1], 40))], Gaps: w.gaps}, w.checkErr
}

func (w *world) Surroundings(context.Context) (*apply.Surroundings, error) {
	return &apply.Surroundings{}, w.surveyErr
}

// Get gives the ConfigMaps of the world, and its other Moorings.
func (w *world) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if m, ok := into.(*v1alpha1.Mooring); ok {
		if w.others[key.Name] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "moorings"}, key.Name)
		}
		w.others[key.Name].DeepCopyInto(m)
		return nil
	}
	if secret, ok := into.(*corev1.Secret); ok && key.Name == "git-keys" {
		w.secrets++
		if w.keys == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
		}
		secret.Data = w.keys
		return nil
	}
	if secret, ok := into.(*corev1.Secret); ok {
		if secret.Data = w.secret; secret.Data == nil {
			secret.Data = map[string][]byte{"username": []byte("mooring"), "password": []byte("hush")}
		}
		return nil
	}
	data, ok := w.configMaps[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
	}
	into.(*corev1.ConfigMap).Data = data
	return nil
}

func (w *world) Plan(_ context.Context, u apply.Unit, set *render.Set, p apply.Policy) (*apply.Plan, error) {
	if w.beforePlan != nil {
		w.beforePlan()
	}
	name := set.Objects[0].GetName()
	w.planned = append(w.planned, name)
	w.policies = append(w.policies, p)
	if w.planErr != nil {
		return nil, w.planErr
	}
	plan := &apply.Plan{Unit: u, Waves: []apply.Wave{{Steps: slices.Repeat([]apply.Step{{Action: apply.Update}}, w.changes)}}}
	if w.guard != nil && name == string(w.head.Commit[:1]) && !p.Confirmed {
		plan.Guard = w.guard
	}
	return plan, nil
}

func (w *world) Run(_ context.Context, p *apply.Plan) (*apply.Result, error) {
	w.runs++
	r := &apply.Result{Objects: 1, Health: w.unhealthy}
	if w.sickAt != "" && w.lastPlanned() == w.sickAt {
		r.Health = sick()
	}
	for range w.changes {
		r.Steps = append(r.Steps, apply.StepResult{Step: apply.Step{Action: apply.Update}, State: apply.Done})
	}
	return r, w.runErr
}

// pass makes a pass and takes its outcome into the status, as the reporter does.
func (w *world) pass(t *testing.T) report.Outcome {
	t.Helper()
	out := w.Once(t.Context(), w.m)
	w.m.Status = report.Status(w.m, out)
	return out
}

// lastPlanned is the object name of the set that was planned for last: the first letter of its commit.
func (w *world) lastPlanned() string { return w.planned[len(w.planned)-1] }

func blocked() []check.Finding {
	return []check.Finding{{Code: "MOOR001", Level: check.Error, Message: "unknown field", Inherent: true}}
}

func want(t *testing.T, out report.Outcome, reason string) {
	t.Helper()
	if out.Reason != reason {
		t.Fatalf("reason is %s (err %v, keep %v), want %s", out.Reason, out.Err, out.KeepErr, reason)
	}
}

func TestAtRestNothingIsRendered(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	for range 3 {
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	}
	if w.renders != 1 || w.resolves != 4 {
		t.Errorf("%d renders and %d questions to Git in four passes, want 1 and 4", w.renders, w.resolves)
	}
}

// A plan holds each object as it is wanted and as it lives: with many Moorings those of the last pass are most of the memory.
func TestNothingOfAPassStays(t *testing.T) {
	w := newWorld()
	w.changes = 3
	pass := func() (weak.Pointer[apply.Plan], weak.Pointer[apply.Result]) {
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
		w.Note(w.m, out)
		return weak.Make(out.Plan), weak.Make(out.Result)
	}
	plan, result := pass()
	runtime.GC()
	if plan.Value() != nil || result.Value() != nil {
		t.Errorf("after the pass its plan is still held: %t, its result: %t", plan.Value() != nil, result.Value() != nil)
	}
	runtime.KeepAlive(w)
}

// Law 6: the stage decides the retry.
func TestLaw6RefusedCommitIsNotRenderedAgain(t *testing.T) {
	for name, breakIt := range map[string]func(w *world){
		v1alpha1.ReasonRenderFailed: func(w *world) { w.renderErr[rev("b").Commit] = errors.New("b.yaml:3: bad") },
		v1alpha1.ReasonCheckFailed:  func(w *world) { w.findings[rev("b").Commit] = blocked() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			w.head = rev("b")
			breakIt(w)
			for range 3 {
				want(t, w.pass(t), name)
			}
			if w.renders != 2 {
				t.Errorf("%d renders, want one for each commit", w.renders)
			}
			w.head = rev("c")
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			if got := w.m.Status.LastAppliedRevision; got != rev("c").String() {
				t.Errorf("applied %s", got)
			}
		})
	}
}

// Law 7, at the level of one pass; end to end it is TestLaw7LastGoodCommitStaysInForce.
func TestLastGoodIsKept(t *testing.T) {
	for name, breakIt := range map[string]func(w *world){
		v1alpha1.ReasonFetchFailed:  func(w *world) { w.resolveErr = errors.New("no route to host") },
		v1alpha1.ReasonRenderFailed: func(w *world) { w.renderErr[rev("b").Commit] = errors.New("bad") },
		v1alpha1.ReasonCheckFailed:  func(w *world) { w.findings[rev("b").Commit] = blocked() },
		v1alpha1.ReasonPruneGuarded: func(w *world) { w.guard = &apply.Guard{Message: "too much"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			w.head = rev("b")
			breakIt(w)
			w.changes = 2
			out := w.pass(t)
			want(t, out, name)
			if w.lastPlanned() != "a" || w.runs != 2 {
				t.Errorf("planned %v, %d runs: want the applied commit a kept", w.planned, w.runs)
			}
			if w.policies[len(w.policies)-1].Prune {
				t.Error("what is kept in force was planned with deletes: they would take what a newer commit, half applied, has made")
			}
			if out.Cause != report.CauseDrift || out.Applied != rev("a") || out.KeepErr != nil {
				t.Errorf("cause %s, applied %s, keep %v", out.Cause, out.Applied, out.KeepErr)
			}
			if got := w.m.Status.LastAppliedRevision; got != rev("a").String() {
				t.Errorf("status says %s is applied", got)
			}
			if len(w.m.Status.History) != 1 {
				t.Errorf("a correction of drift made history: %v", w.m.Status.History)
			}
		})
	}
}

func TestNothingIsKeptBeforeTheFirstApply(t *testing.T) {
	w := newWorld()
	w.renderErr[rev("a").Commit] = errors.New("bad")
	want(t, w.pass(t), v1alpha1.ReasonRenderFailed)
	if len(w.planned) != 0 || w.runs != 0 {
		t.Errorf("planned %v, ran %d", w.planned, w.runs)
	}
}

// After a restart and with another path, the applied commit renders to something else: applying that would prune
// what the old path had.
func TestWhatWasAppliedIsNotKeptUnderAnotherPath(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.m.Spec.Path, w.m.Generation = "other", 2
	w.Syncer = w.restarted()
	w.resolveErr = errors.New("no route to host")
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonFetchFailed)
	if out.KeepErr == nil || w.runs != 1 {
		t.Errorf("keep error %v, %d runs; want an error and no second run", out.KeepErr, w.runs)
	}
}

func TestRunThatFailsHalfWayIsNotTurnedBack(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.head, w.runErr = rev("b"), errors.New("apply ConfigMap/apps/b: denied")
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonApplyFailed)
	if w.lastPlanned() != "b" || out.Result == nil || out.Applied != rev("a") {
		t.Errorf("planned %v, result %v, applied %s", w.planned, out.Result, out.Applied)
	}
	w.runErr = nil
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if w.m.Status.LastAppliedRevision != rev("b").String() || w.renders != 2 {
		t.Errorf("applied %s after %d renders", w.m.Status.LastAppliedRevision, w.renders)
	}
}

func TestConfirmCountsForItsRevisionOnly(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.head, w.guard = rev("b"), &apply.Guard{Message: "too much"}
	w.m.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: rev("a").String()}
	want(t, w.pass(t), v1alpha1.ReasonPruneGuarded)
	for _, word := range []string{rev("b").String(), string(rev("b").Commit)} {
		w.m.Annotations[v1alpha1.ConfirmAnnotation] = word
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
	}
	if by := w.m.Status.History[0].By; by != string(report.CauseConfirm) {
		t.Errorf("history says by %q", by)
	}
}

func TestPanicIsTheUnitsOwnFailure(t *testing.T) {
	w := newWorld()
	w.panics = "render"
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonRenderFailed)
	var panicked *sync.PanicError
	if !errors.As(out.Err, &panicked) || len(panicked.Stack) == 0 {
		t.Fatalf("error is %v", out.Err)
	}
	if strings.Contains(report.Message(out), "goroutine") {
		t.Error("the stack is in the message")
	}
	w.panics = ""
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func TestPreviewWritesNothing(t *testing.T) {
	w := newWorld()
	out := w.Preview(t.Context(), &v1alpha1.Mooring{Spec: v1alpha1.MooringSpec{Source: w.m.Spec.Source}}) // as read from a file: no defaults
	if out.Plan == nil || out.Err != nil || w.runs != 0 {
		t.Errorf("plan %v, err %v, %d runs", out.Plan, out.Err, w.runs)
	}
	if p := w.policies[0]; !p.Prune || p.MaxPercent != 25 || p.MaxObjects != 50 {
		t.Errorf("policy of a Mooring without prune is %+v", p)
	}
}

func TestWaitIsAStateNotALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.m.Spec.Wait = true
		w.m.Spec.Timeout.Duration = time.Minute
		w.unhealthy = []apply.Health{{Status: status.InProgressStatus, Message: "0 of 1 replicas"}}
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if d := w.Next(w.m, out); d > 3*time.Second {
			t.Errorf("looks again after %s", d)
		}
		time.Sleep(10 * time.Second)
		want(t, w.pass(t), v1alpha1.ReasonProgressing)
		if w.resolves != 1 {
			t.Errorf("Git was asked %d times while waiting within one interval", w.resolves)
		}
		w.m.Annotations = map[string]string{v1alpha1.ReconcileAnnotation: "now"}
		want(t, w.pass(t), v1alpha1.ReasonProgressing)
		if w.resolves != 2 {
			t.Error("a person who asks for a pass is not asking Git")
		}
		w.Syncer = w.restarted()
		time.Sleep(51 * time.Second)
		want(t, w.pass(t), v1alpha1.ReasonHealthTimeout)
		w.unhealthy = nil
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	})
}

func TestPausesGrowByStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		between := func(out report.Outcome, least time.Duration) time.Duration {
			t.Helper()
			got := w.Next(w.m, out)
			if got < least || got > least+least/5 {
				t.Errorf("pause %s, want %s and a little jitter", got, least)
			}
			return got
		}
		fetch := report.Outcome{Reason: v1alpha1.ReasonFetchFailed, Stage: report.StageFetch}
		began := time.Now()
		for range 8 {
			time.Sleep(between(fetch, min(max(5*time.Second, time.Since(began)), 5*time.Minute)))
		}
		if lasted := time.Since(began); lasted < 10*time.Minute {
			t.Errorf("eight attempts within %s", lasted)
		}
		between(report.Outcome{Reason: v1alpha1.ReasonCheckFailed, Stage: report.StageCheck}, 5*time.Minute)
		between(fetch, 5*time.Second) // another kind of failure began anew
		for range 100 {               // passes that are made because objects move do not make the pause longer
			between(fetch, 5*time.Second)
		}
		time.Sleep(time.Minute)
		between(fetch, time.Minute)
		another := fetch
		another.Newest.Commit = "1234"
		between(another, 5*time.Second)
		keep := report.Outcome{Reason: v1alpha1.ReasonCheckFailed, Stage: report.StageCheck, KeepErr: errors.New("x")}
		w.Next(w.m, report.Outcome{Reason: v1alpha1.ReasonApplied})
		between(keep, 5*time.Second)
	})
}

func TestKindsBook(t *testing.T) {
	kinds := sync.ParseKinds("Service,VirtualService.networking.istio.io")
	if got := sync.FormatKinds([]schema.GroupKind{kinds[1], kinds[0]}); got != "Service,VirtualService.networking.istio.io" {
		t.Errorf("book is %q", got)
	}
	if got := sync.ParseKinds(""); len(got) != 0 {
		t.Errorf("an empty book has %v", got)
	}
}
