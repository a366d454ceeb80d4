package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/world"
)

// run is one run of the proof.
type run struct {
	*testing.T
	*stage
	rand *rand.Rand
	// two Moorings have a folder each, and files move from the first to the second.
	two bool

	home, clean *site
	// commits in the order in which they were pushed: in force (perhaps empty), interrupted, last.
	commits [3]commit
	phases  []phase
	// bystanders are objects that are none of Mooring's business: id to "uid resourceVersion".
	bystanders map[render.ID]string
	kills      []string
	confirmed  bool // a human let a guarded plan through
	story      []string
	followed   bool // the witness sees the custom resources
	// patience with what goes by itself.
	patience time.Duration
}

// phase is a time in which these objects must not be deleted.
type phase struct {
	name   string
	from   uint64
	wanted map[render.ID]*unstructured.Unstructured
}

// site is a namespace with a repository and the Moorings of its folders.
type site struct {
	ns   string
	repo *gitserver.TestRepo
	has  map[string]string
	head string
	keys []world.Key
}

func newRun(t *testing.T, s *stage, r *rand.Rand) *run {
	t.Helper()
	run := &run{T: t, stage: s, rand: r, two: odds(r, 4), bystanders: make(map[render.ID]string), patience: patience}
	run.home, run.clean = run.site(), run.site()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what was done:\n%s", strings.Join(run.story, "\n"))
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
			defer cancel()
			for _, key := range run.home.keys {
				t.Log(s.Describe(ctx, key))
			}
			t.Log(s.agent.LogTail(20))
		}
	})
	return run
}

func (r *run) site() *site {
	r.Helper()
	s := &site{ns: r.Cluster.Namespace(r)}
	s.repo = r.Git.Repo(r, s.ns+".git", map[string]string{"README.md": "a mesh"})
	for i, folder := range folders {
		if i == 0 || r.two {
			s.keys = append(s.keys, world.Key{Namespace: s.ns, Name: folder})
		}
	}
	r.push(s, commit{})
	return s
}

// push makes a commit the newest of a site.
func (r *run) push(s *site, c commit) {
	r.Helper()
	files := c.contents()
	for path, text := range files {
		files[path] = strings.ReplaceAll(text, "$NS", s.ns)
		if !r.two && strings.HasPrefix(path, folders[1]+"/") {
			delete(files, path)
		}
	}
	change := gitserver.Change{Files: files}
	for path := range s.has {
		if _, ok := files[path]; !ok {
			change.Remove = append(change.Remove, path)
		}
	}
	s.has, s.head = files, s.repo.Commit(change)
}

// moor makes the Moorings of a site.
func (r *run) moor(s *site) {
	r.Helper()
	for _, key := range s.keys {
		r.moorOne(s, key)
	}
}

func (r *run) moorOne(s *site, key world.Key) {
	r.Helper()
	m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	m.Spec.Path = key.Name
	m.Spec.Source = v1alpha1.Source{URL: s.repo.URL, Ref: v1alpha1.Ref{Branch: gitserver.DefaultBranch}}
	m.Spec.Interval.Duration = time.Hour
	m.Spec.Timeout.Duration = patience
	m.Spec.Prune.MaxPercent, m.Spec.Prune.MaxObjects = new(int32(100)), new(int32(1000))
	m.Spec.Check = &v1alpha1.Check{Ignore: []v1alpha1.CheckCode{"IST0173"}} // there are no Pods for subsets to select
	if err := r.Client().Create(r.Context(), m); err != nil {
		r.Fatal(err)
	}
}

func (r *run) tell(format string, args ...any) {
	r.story = append(r.story, fmt.Sprintf(format, args...))
}

// play does all of a run, up to where the judges come.
func (r *run) play() {
	r.Helper()
	r.start()
	r.interrupt()
	r.last()
	if odds(r.rand, 3) {
		r.killAgain()
	}
	r.restart(r.T)
	r.tell("the agent is started again")
	r.push(r.clean, r.commits[2])
	r.moor(r.clean)
	r.settle(r.home)
	r.settle(r.clean)
	if err := r.witness.CaughtUp(within(r.T, patience), r.here); err != nil {
		r.Fatal(err)
	}
}

// start puts a first commit into force, most of the time, and bystanders beside it.
func (r *run) start() {
	r.Helper()
	if odds(r.rand, 8) {
		r.commits[0] = first(r.rand)
		r.push(r.home, r.commits[0])
	}
	r.moor(r.home)
	if !r.commits[0].none() {
		r.settle(r.home)
		r.tell("commit %s is in force:\n%s", r.home.head, r.commits[0])
	}
	r.addBystanders()
	r.followWidgets()
	r.phase("after the interrupted commit was pushed", r.next(r.commits[0], false))
}

// next draws the commit that comes after another.
func (r *run) next(c commit, definitionsGo bool) commit {
	var n commit
	if c.none() {
		n = first(r.rand)
	} else {
		n = c.next(r.rand, definitionsGo)
	}
	if r.two {
		n = n.moved(r.rand)
	}
	return n
}

// none says that there is no commit yet.
func (c commit) none() bool { return len(c.files) == 0 }

// phase begins a time in which what the commit has must not go.
func (r *run) phase(name string, c commit) {
	r.Helper()
	r.commits[len(r.phases)+1] = c
	now, err := r.witness.Now(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	wanted, err := c.objects(r.home.ns)
	if !r.two {
		delete(wanted, render.ID{Kind: "ConfigMap", Namespace: r.home.ns, Name: "mark-" + folders[1]})
	}
	if err != nil {
		r.Fatal(err)
	}
	r.phases = append(r.phases, phase{name: name, from: now, wanted: wanted})
}

// deadline draws an instant in which the agent dies.
func (r *run) deadline(requests, writes int) deadline {
	d := deadline{moment: pick(r.rand, before, before, after, after, between, anytime), writes: odds(r.rand, 7)}
	n := requests
	if d.writes {
		n = writes
	}
	d.nth = 1 + r.rand.IntN(max(n, 1))
	switch d.moment {
	case between:
		d.pause = time.Duration(r.rand.IntN(10_000)) * time.Microsecond
	case anytime:
		d.pause = time.Duration(r.rand.IntN(1200)) * time.Millisecond
	}
	return d
}

// interrupt pushes the second commit and kills the agent while it applies it.
func (r *run) interrupt() {
	r.Helper()
	changes := differing(r.commits[0], r.commits[1])
	d := r.deadline(20+3*changes, 2+changes)
	r.tell("to be interrupted (%s), about %d objects change:\n%s", d, changes, r.commits[1].since(r.commits[0]))
	dead := r.killer.arm(d, r.agent.Kill)
	r.push(r.home, r.commits[1])
	r.ask(r.home)
	r.dies(dead)
}

// dies waits until the agent is dead, or has done all and lives: then it is killed where it stands.
func (r *run) dies(dead <-chan struct{}) {
	r.Helper()
	err := poll.Until(within(r.T, patience), "the agent is dead", func() error {
		select {
		case <-dead:
			return nil
		default:
		}
		return r.still()
	})
	hit, last := r.killer.disarm()
	if err != nil {
		r.Fatal(err, last)
	}
	if hit == "" {
		hit = "after all was done"
	}
	r.agent.Kill()
	r.killer.quiet()
	r.kills = append(r.kills, sortOf(hit))
	r.tell("the agent is killed: %s; it asked last:\n  %s", hit, strings.Join(last[max(0, len(last)-12):], "\n  "))
	for _, fault := range r.untracked() {
		r.Errorf("right after the kill: %s", fault)
	}
	r.followWidgets()
}

// still is an error as long as a Mooring of the run has something to do: its newest commit is neither in force nor held by the guard, nor does it wait
// for an object of one that is held.
func (r *run) still() error {
	var waiting error
	held := false
	for _, key := range r.home.keys {
		m, err := r.Mooring(r.Context(), key)
		if err != nil {
			return err
		}
		ready := world.Ready(m)
		switch {
		case world.InForce(r.home.head)(m) == nil:
		case !strings.HasSuffix(m.Status.LastAttemptedRevision, r.home.head):
			return fmt.Errorf("%s has not come to the newest commit", key)
		case ready.Reason == v1alpha1.ReasonPruneGuarded:
			held = true
		case ready.Reason == v1alpha1.ReasonApplyFailed && strings.Contains(ready.Message, "belongs to Mooring"):
			waiting = errors.New(ready.Message)
		default:
			return errors.New(ready.Message)
		}
	}
	if held {
		return nil
	}
	return waiting
}

// sortOf a request, for the figures.
func sortOf(hit string) string {
	switch {
	case strings.HasSuffix(hit, "(dry run)"):
		return "at a dry run"
	case strings.Contains(hit, "/moorings/") && strings.HasSuffix(hit, "/status"):
		return "at the status"
	case strings.Contains(hit, "/moorings/"):
		return "at the book of kinds"
	case strings.HasPrefix(hit, "GET"):
		return "at a read"
	case strings.HasPrefix(hit, "PATCH"):
		return "at an apply"
	case strings.HasPrefix(hit, "DELETE"):
		return "at a delete"
	case strings.HasPrefix(hit, "POST"):
		return "at an event"
	}
	return hit
}

// last pushes the commit that is to be in force in the end.
func (r *run) last() {
	r.Helper()
	c, what := r.commits[1], "the interrupted commit stays the newest"
	switch n := r.rand.IntN(10); {
	case n < 2 && !r.commits[0].none():
		c, what = r.commits[0], "the first commit comes back"
	case n < 8:
		c, what = r.next(c, true), "another commit is pushed"
	}
	r.phase("after the kill", c)
	r.tell("%s:\n%s", what, c.since(r.commits[1]))
	if differing(c, r.commits[1]) > 0 {
		r.push(r.home, c)
	}
}

// killAgain starts the agent and kills it once more.
func (r *run) killAgain() {
	r.Helper()
	d := r.deadline(60, 2+differing(r.commits[1], r.commits[2]))
	r.tell("started, and to be killed again (%s)", d)
	// The deadline may come before the agent says that it is ready. Then it is not tried again: that is what the context is for.
	ctx, cancel := context.WithCancel(within(r.T, patience))
	defer cancel()
	dead := r.killer.arm(d, func() { cancel(); r.KillAgents() })
	agent, err := r.StartAgent(ctx, world.AgentOptions{Kubeconfig: r.killer.kubeconfig})
	switch {
	case err == nil:
		r.agent = agent
	case ctx.Err() == nil:
		r.Fatal(err)
	}
	r.dies(dead)
}

// ask for a pass of each Mooring of a site.
func (r *run) ask(s *site) {
	r.Helper()
	for _, key := range s.keys {
		if _, err := r.Ask(r.Context(), key); err != nil {
			r.Fatal(err)
		}
	}
}

// settle waits until a site's newest commit is in force. Where that takes a definition away the guard must have held it, and a human's word lets
// it through.
func (r *run) settle(s *site) {
	r.Helper()
	r.ask(s)
	asked := time.Now()
	err := poll.Until(within(r.T, patience), "commit "+s.head+" is in force", func() error {
		if time.Since(asked) > 2*time.Second { // one that was refused for what another had then
			r.ask(s)
			asked = time.Now()
		}
		for _, key := range s.keys {
			if err := r.settled(s, key); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// settled is an error as long as a Mooring's newest commit is not in force.
func (r *run) settled(s *site, key world.Key) error {
	m, err := r.Mooring(r.Context(), key)
	if err != nil {
		return err
	}
	ready := world.Ready(m)
	switch {
	case !strings.HasSuffix(m.Status.LastAttemptedRevision, s.head):
	case ready.Reason == v1alpha1.ReasonCheckFailed || ready.Reason == v1alpha1.ReasonRenderFailed:
		return poll.Final(errors.New(ready.Message)) // the proof's fault
	case world.HasReason(v1alpha1.ReasonPruneGuarded)(m) == nil && m.Annotations[v1alpha1.ConfirmAnnotation] != m.Status.LastAttemptedRevision:
		r.tell("guarded: %s", ready.Message)
		if s == r.home {
			r.confirmed = true
		}
		before := m.DeepCopy()
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ConfirmAnnotation, m.Status.LastAttemptedRevision)
		if err := r.Client().Patch(r.Context(), m, client.MergeFrom(before)); err != nil {
			return poll.Final(err)
		}
	}
	return world.InForce(s.head)(m)
}

// end takes all Moorings away. What they kept must go with them, but for definitions, which nobody's they must be.
func (r *run) end() {
	r.Helper()
	for _, s := range []*site{r.home, r.clean} {
		for _, key := range s.keys {
			m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			if err := r.Client().Delete(r.Context(), m); err != nil {
				r.Fatal(err)
			}
		}
	}
	for _, s := range []*site{r.home, r.clean} {
		for _, key := range s.keys {
			r.gone(key)
		}
		for _, o := range r.list(s) {
			if slices.Contains(s.parts(), o.GetLabels()[apply.PartOfLabel]) && !r.isBystander(idOf(o)) && o.GetDeletionTimestamp() == nil {
				r.Errorf("%s carries the label of a Mooring that is gone", idOf(o))
			}
		}
		r.wipe(s)
	}
}

// gone waits until a Mooring is.
func (r *run) gone(key world.Key) {
	r.Helper()
	err := poll.Until(within(r.T, patience), "the Mooring is gone", func() error {
		m, err := r.Mooring(r.Context(), key)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there, with the finalizers %v", m.Finalizers))
	})
	if err != nil {
		r.Error(err)
	}
}

// wipe takes away what has no namespace.
func (r *run) wipe(s *site) {
	r.Helper()
	for _, o := range r.list(s) {
		if o.GetNamespace() != "" {
			continue
		}
		if err := r.Client().Delete(r.Context(), o); err != nil && !apierrors.IsNotFound(err) {
			r.Error(err)
		}
	}
	mine := func(id render.ID) bool { return of(s, id) }
	r.witness.Forget(mine)
}

// differing counts the objects that two commits have differently.
func differing(a, b commit) int {
	n := 0
	for name := range drawn() {
		if a.files[name] != b.files[name] || a.folder(name) != b.folder(name) {
			n += 1 + strings.Count(a.files[name]+b.files[name], "---\n")
		}
	}
	return n
}

// since writes what a commit changes.
func (c commit) since(before commit) string {
	var b strings.Builder
	for name := range sorted(drawn()) {
		switch {
		case c.files[name] == before.files[name] && c.folder(name) == before.folder(name):
		case c.files[name] == "":
			fmt.Fprintf(&b, "# %s goes\n", name)
		default:
			fmt.Fprintf(&b, "# %s/%s (was in %s)\n%s", c.folder(name), name, before.folder(name), c.files[name])
		}
	}
	return b.String()
}

// String writes the whole commit.
func (c commit) String() string { return c.since(commit{}) }

func (r *run) isBystander(id render.ID) bool {
	_, ok := r.bystanders[id]
	return ok
}

// parts are the ApplySets of a site's Moorings.
func (s *site) parts() []string {
	var all []string
	for _, key := range s.keys {
		all = append(all, apply.ApplySetID(key.Name, key.Namespace, v1alpha1.Kind, v1alpha1.GroupVersion.Group))
	}
	return all
}

// here says whether an object belongs to the place of the run.
func (r *run) here(id render.ID) bool { return of(r.home, id) }

func of(s *site, id render.ID) bool {
	return slices.Contains([]string{s.ns, s.ns + "-more"}, id.Namespace) ||
		id.Namespace == "" && id.Name != s.ns && strings.Contains(id.Name, s.ns)
}
