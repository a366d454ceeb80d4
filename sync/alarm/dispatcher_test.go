package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/alarm"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// stage is a Dispatcher with a receiver that is played, in a bubble of its own time.
type stage struct {
	*alarm.Dispatcher
	*alarm.Played
	t      *testing.T
	titles []string
	texts  []string
	at     []time.Duration
	begun  time.Time
	fail   error
	tries  int
}

// play runs a story in the time of a bubble, with an Alarm in namespace shop.
func play(t *testing.T, spec v1alpha1.AlarmSpec, story func(*stage)) {
	synctest.Test(t, func(t *testing.T) { story(begin(t, spec, v1alpha1.AlarmStatus{}, nil)) })
}

func begin(t *testing.T, spec v1alpha1.AlarmSpec, status v1alpha1.AlarmStatus, there []*v1alpha1.Mooring) *stage {
	t.Helper()
	s := &stage{t: t, begun: time.Now()}
	s.Played = &alarm.Played{Send: func(_ context.Context, m alarm.Sent) error {
		s.Guard.Lock()
		defer s.Guard.Unlock()
		s.tries++
		if s.fail != nil {
			return s.fail
		}
		s.titles, s.texts, s.at = append(s.titles, m.Title), append(s.texts, m.Text), append(s.at, time.Since(s.begun))
		return nil
	}}
	s.Dispatcher = alarm.NewPlayed(s.Played)
	for _, m := range there {
		s.Seed(m)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = s.Start(ctx) }()
	s.Set(ctx, alarmOf(spec, status))
	synctest.Wait()
	s.Guard.Lock()
	t.Cleanup(func() {
		s.Guard.Unlock()
		cancel()
		synctest.Wait()
	})
	return s
}

// alarmOf a spec, with what the API server fills in.
func alarmOf(spec v1alpha1.AlarmSpec, status v1alpha1.AlarmStatus) *v1alpha1.Alarm {
	if spec.Alertmanager == nil {
		spec.Shoutrrr = &v1alpha1.ShoutrrrReceiver{}
	}
	if spec.Events == nil {
		spec.Events = []v1alpha1.AlarmEvent{"drift", "failed", "guarded", "fight", "recovered"}
	}
	if spec.GroupWait.Duration == 0 {
		spec.GroupWait.Duration = 10 * time.Second
	}
	if spec.GroupInterval.Duration == 0 {
		spec.GroupInterval.Duration = 5 * time.Minute
	}
	return &v1alpha1.Alarm{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chat", UID: "1"}, Spec: spec, Status: status}
}

// pass of a Mooring of namespace shop that ends with this reason and message.
func (s *stage) pass(name, reason, message string, events ...report.Event) {
	s.Passed(mooring("shop/"+name, reason, message), report.Outcome{}, events)
	s.rest()
}

// rest lets everybody else come to rest.
func (s *stage) rest() {
	s.Guard.Unlock()
	defer s.Guard.Lock()
	synctest.Wait()
}

// mooring namespace/name, whose Ready condition says this.
func mooring(name, reason, message string) *v1alpha1.Mooring {
	ns, name, _ := strings.Cut(name, "/")
	m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"team": name}}}
	status := metav1.ConditionFalse
	switch reason {
	case v1alpha1.ReasonApplied:
		status = metav1.ConditionTrue
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonSuspended:
		status = metav1.ConditionUnknown
	}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}}
	return m
}

// wait lets time go by.
func (s *stage) wait(d time.Duration) {
	s.Guard.Unlock()
	defer s.Guard.Lock()
	time.Sleep(d)
	synctest.Wait()
}

// told compares what was sent until now.
func (s *stage) told(titles ...string) {
	s.t.Helper()
	if diff := cmp.Diff(titles, s.titles); diff != "" {
		s.t.Errorf("titles (-want +got):\n%s", diff)
	}
}

const (
	failed  = v1alpha1.ReasonApplyFailed
	applied = v1alpha1.ReasonApplied
	denied  = `apply VirtualService/shop/web (web.yaml:3): admission webhook denied the request`
)

func TestOneAlarmAndOneRecovery(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{}, func(s *stage) {
		s.pass("prod", applied, "")
		s.wait(time.Hour)
		s.told()
		for range 50 { // the same fault, found by each pass, with words that differ a little
			s.pass("prod", failed, denied+fmt.Sprint(time.Now().Unix()))
			s.wait(time.Minute)
		}
		s.told("Mooring shop/prod: failed (ApplyFailed)")
		if !strings.Contains(s.texts[0], denied) {
			t.Errorf("the text lacks the message: %s", s.texts[0])
		}
		s.pass("prod", v1alpha1.ReasonProgressing, "waiting") // on its way is not over
		s.wait(time.Hour)
		s.told("Mooring shop/prod: failed (ApplyFailed)")
		for range 50 {
			s.pass("prod", applied, "")
			s.wait(time.Minute)
		}
		s.told("Mooring shop/prod: failed (ApplyFailed)", "Mooring shop/prod: recovered (failed, ApplyFailed)")
		if n := s.Written.OpenCount; n != 0 || s.Written.Sent != 2 {
			t.Errorf("%d open, %d sent", n, s.Written.Sent)
		}
	})
}

func TestStormIsOneAlarm(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{}, func(s *stage) {
		for i := range 200 { // one cause, 200 Moorings, within the window
			s.pass(fmt.Sprintf("m%03d", i), failed, fmt.Sprintf(`apply VirtualService/shop/r%d (r%d.yaml:3): admission webhook "v.istio.io" denied the request`, i, i))
			s.wait(10 * time.Millisecond)
		}
		s.wait(4 * time.Minute)
		s.told("Mooring 200 Moorings: failed (ApplyFailed)")
		if text := s.texts[0]; !strings.Contains(text, "shop/m000, shop/m001, shop/m002 and 197 more") || strings.Count(text, "denied") != 1 {
			t.Errorf("text:\n%s", text)
		}
		for i := range 100 { // the same cause goes on: it waits for the interval, and is told together
			s.pass(fmt.Sprintf("n%03d", i), failed, fmt.Sprintf(`apply VirtualService/shop/r%d: admission webhook "v.istio.io" denied the request`, i))
		}
		s.wait(30 * time.Second)
		s.told("Mooring 200 Moorings: failed (ApplyFailed)")
		s.wait(time.Minute)
		s.told("Mooring 200 Moorings: failed (ApplyFailed)", "Mooring 100 Moorings: failed (ApplyFailed)")
		for i := range 200 {
			s.pass(fmt.Sprintf("m%03d", i), applied, "")
		}
		s.wait(time.Minute)
		s.told("Mooring 200 Moorings: failed (ApplyFailed)", "Mooring 100 Moorings: failed (ApplyFailed)", "Mooring 200 Moorings: recovered (failed, ApplyFailed)")
		if s.Written.OpenCount != 100 || len(s.Written.Open) != 100 {
			t.Errorf("%d open, %d listed", s.Written.OpenCount, len(s.Written.Open))
		}
	})
}

func TestHiccupsAreNotTold(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{GroupWait: metav1.Duration{Duration: 2 * time.Minute}}, func(s *stage) {
		for range 20 {
			s.pass("prod", v1alpha1.ReasonFetchFailed, "no route to host")
			s.wait(time.Minute)
			s.pass("prod", applied, "")
			s.wait(time.Minute)
		}
		s.told()
	})
}

func TestWhatIsTold(t *testing.T) {
	fight := mooring("shop/prod", applied, "")
	fight.Status.Fights = []v1alpha1.FightEntry{{Object: "VirtualService/shop/web", Field: "/spec/http", Manager: "other", Corrections: 4, Since: metav1.Now()}}
	drift := mooring("shop/prod", applied, "")
	drift.Status.Conditions = append(drift.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "Alarm", Message: "one differs"})
	drift.Status.Drift = []v1alpha1.DriftEntry{{Object: "VirtualService/shop/web", Field: "/spec/http/0/timeout", Want: "5s", Live: "1s", Manager: "kubectl-edit"}}
	drift.Status.DriftCount = 5
	beside := mooring("shop/prod", applied, "")
	beside.Status.Unmanaged = []v1alpha1.UnmanagedEntry{{Object: "EnvoyFilter/shop/old", BearsOn: "web.shop", Why: "it patches their listeners", Managers: []string{"kubectl"}}}
	beside.Status.UnmanagedCount = 1
	waits := mooring("shop/prod", applied, "")
	waits.Status.Conditions = append(waits.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionPromoted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAwaitingApproval, Message: "main@sha1:bbbb waits for a person",
	})
	soaks := mooring("shop/prod", applied, "")
	soaks.Status.Conditions = append(soaks.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPromoted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSoaking})
	unwritten := mooring("shop/prod", failed, denied)
	unwritten.Status.Conditions = append(unwritten.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrifted, Status: metav1.ConditionTrue, Reason: "NotCorrected"})
	all := []v1alpha1.AlarmEvent{"drift", "driftCorrected", "failed", "guarded", "recovered", "applied", "fight", "unmanaged", "promotion"}
	commit := report.Event{Reason: applied, Note: "main@sha1:aaaa: 3 created"}
	for _, c := range []struct {
		name    string
		mooring *v1alpha1.Mooring
		out     report.Outcome
		event   report.Event
		events  []v1alpha1.AlarmEvent
		title   string
		text    string
	}{
		{"guarded", mooring("shop/prod", "PruneGuarded", "would delete 40 of 50"), report.Outcome{}, report.Event{}, nil, "shop/prod: waits for a word", "would delete 40 of 50"},
		{"guarded, not asked for", mooring("shop/prod", "PruneGuarded", ""), report.Outcome{}, report.Event{}, []v1alpha1.AlarmEvent{"failed"}, "", ""},
		{"a window", mooring("shop/prod", "WindowClosed", ""), report.Outcome{}, report.Event{}, nil, "", ""},
		{"drift", drift, report.Outcome{}, report.Event{}, nil, "shop/prod: drifted", "Git has 5s, the cluster 1s, by kubectl-edit\nand 2 more fields"},
		{"not written", unwritten, report.Outcome{}, report.Event{}, nil, "shop/prod: failed (ApplyFailed)", denied},
		{"unmanaged", beside, report.Outcome{}, report.Event{}, all, "shop/prod: has unmanaged objects beside it", "EnvoyFilter/shop/old bears on web.shop: it patches their listeners (written by kubectl)"},
		{"unmanaged, not asked for", beside, report.Outcome{}, report.Event{}, nil, "", ""},
		{"promotion", waits, report.Outcome{}, report.Event{}, all, "shop/prod: has a proven commit that does not come by itself", "main@sha1:bbbb waits for a person"},
		{"promotion, not asked for", waits, report.Outcome{}, report.Event{}, nil, "", ""},
		{"promotion that soaks", soaks, report.Outcome{}, report.Event{}, all, "", ""},
		{"fight", fight, report.Outcome{}, report.Event{}, nil, "shop/prod: is fought over", "/spec/http of VirtualService/shop/web, which other writes as well: put back 4 times"},
		{"corrected", mooring("shop/prod", applied, ""), report.Outcome{}, report.Event{Reason: "DriftCorrected", Note: "by kubectl-edit"}, all, "shop/prod: drifted and was put back", "by kubectl-edit"},
		{"corrected, not asked for", mooring("shop/prod", applied, ""), report.Outcome{}, report.Event{Reason: "DriftCorrected", Note: "by kubectl-edit"}, nil, "", ""},
		{"applied", mooring("shop/prod", applied, ""), report.Outcome{}, commit, all, "shop/prod: applied a commit", "3 created"},
		{"in part", mooring("shop/prod", "Progressing", ""), report.Outcome{Err: errors.New("x")}, commit, all, "", ""},
		{"another namespace", mooring("other/prod", failed, denied), report.Outcome{}, report.Event{}, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			play(t, v1alpha1.AlarmSpec{Events: c.events}, func(s *stage) {
				s.Passed(c.mooring, c.out, []report.Event{c.event})
				s.wait(time.Minute)
				if c.title == "" {
					s.told()
					return
				}
				s.told("Mooring " + c.title)
				if len(s.texts) > 0 && !strings.Contains(s.texts[0], c.text) {
					t.Errorf("the text lacks %q:\n%s", c.text, s.texts[0])
				}
			})
		})
	}
}

func TestWhichMoorings(t *testing.T) {
	label := func(team string) v1alpha1.MooringSelector {
		return v1alpha1.MooringSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}}
	}
	for _, c := range []struct {
		name   string
		spec   v1alpha1.AlarmSpec
		across []string
		want   string // of shop/a, shop/b, other/a
		reason string
	}{
		{"all of its namespace", v1alpha1.AlarmSpec{}, nil, "shop/a, shop/b", "Listening"},
		{"by name", v1alpha1.AlarmSpec{Moorings: []v1alpha1.MooringSelector{{Name: "a"}}}, nil, "shop/a", "Listening"},
		{"by label or name", v1alpha1.AlarmSpec{Moorings: []v1alpha1.MooringSelector{label("b"), {Name: "c"}}}, nil, "shop/b", "Listening"},
		{"its own by name", v1alpha1.AlarmSpec{Namespaces: []string{"shop"}}, nil, "shop/a, shop/b", "Listening"},
		{"everybody's, and may not", v1alpha1.AlarmSpec{Namespaces: []string{"*"}}, []string{"ops"}, "", "NotAllowed"},
		{"everybody's", v1alpha1.AlarmSpec{Namespaces: []string{"*"}}, []string{"shop"}, "other/a, shop/a, shop/b", "Listening"},
		{"another's", v1alpha1.AlarmSpec{Namespaces: []string{"other"}, Moorings: []v1alpha1.MooringSelector{{Name: "a"}}}, []string{"*"}, "other/a", "Listening"},
		{"a wrong selector", v1alpha1.AlarmSpec{Moorings: []v1alpha1.MooringSelector{{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}},
		}}}}, nil, "", "InvalidSelector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				p := &alarm.Played{Send: func(_ context.Context, m alarm.Sent) error {
					for _, g := range m.Message.Firing {
						got = append(got, g.Moorings...)
					}
					return nil
				}}
				d := alarm.NewPlayed(p)
				d.Across = c.across
				ctx, cancel := context.WithCancel(t.Context())
				go func() { _ = d.Start(ctx) }()
				d.Set(ctx, alarmOf(c.spec, v1alpha1.AlarmStatus{}))
				for _, name := range []string{"other/a", "shop/a", "shop/b"} {
					d.Passed(mooring(name, failed, denied), report.Outcome{}, nil)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := strings.Join(got, ", "); s != c.want {
					t.Errorf("told of %q, want %q", s, c.want)
				}
				if r := p.Written.Conditions[0].Reason; r != c.reason {
					t.Errorf("Ready says %s: %s", r, p.Written.Conditions[0].Message)
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestNothingIsRepeatedOrForgottenByARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := begin(t, v1alpha1.AlarmSpec{}, v1alpha1.AlarmStatus{}, nil)
		for _, name := range []string{"a", "b", "c"} {
			first.pass(name, failed, denied)
		}
		first.wait(time.Minute)
		first.told("Mooring 3 Moorings: failed (ApplyFailed)")
		// The agent is away; meanwhile b recovers, c is deleted, d breaks.
		second := begin(t, v1alpha1.AlarmSpec{}, first.Written, []*v1alpha1.Mooring{
			mooring("shop/a", failed, denied), mooring("shop/b", applied, ""), mooring("shop/d", "RenderFailed", "web.yaml:3"),
		})
		second.pass("a", failed, denied)
		second.wait(time.Hour)
		second.told("Mooring shop/d: failed (RenderFailed); shop/b: recovered (failed, ApplyFailed)")
		second.pass("a", applied, "")
		second.wait(time.Hour)
		second.told("Mooring shop/d: failed (RenderFailed); shop/b: recovered (failed, ApplyFailed)", "Mooring shop/a: recovered (failed, ApplyFailed)")
		if got := second.Written.Open; len(got) != 1 || got[0].Mooring != "shop/d" || second.Written.Sent != 3 {
			t.Errorf("open: %v, sent %d", got, second.Written.Sent)
		}
	})
}

func TestRetriesWithGrowingPauses(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{Events: []v1alpha1.AlarmEvent{"failed", "recovered", "applied"}}, func(s *stage) {
		s.fail = errors.New("connection refused")
		s.pass("prod", failed, denied)
		s.pass("dev", applied, "", report.Event{Reason: applied, Note: "3 created"})
		s.wait(time.Minute)
		if c := s.Written.Conditions[0]; c.Reason != v1alpha1.AlarmReasonSendFailed || s.Written.LastError != "connection refused" || s.Written.OpenCount != 0 {
			t.Errorf("status %+v", s.Written)
		}
		if s.tries != 4 { // at 10 s, 15 s, 25 s, 45 s
			t.Errorf("%d tries in a minute", s.tries)
		}
		s.fail = nil
		s.wait(time.Minute)
		s.told("Mooring shop/prod: failed (ApplyFailed); shop/dev: applied a commit")
		if s.Written.LastError != "" || s.Written.Failed != 4 || s.Written.Conditions[0].Reason != v1alpha1.AlarmReasonListening {
			t.Errorf("status %+v", s.Written)
		}
		// Nobody answers for a day. What lasts is told then, and what only happened is not.
		s.fail, s.tries = errors.New("connection refused"), 0
		s.pass("other", failed, "another cause")
		s.pass("dev", applied, "", report.Event{Reason: applied, Note: "5 created"})
		s.wait(24 * time.Hour)
		if s.tries < 200 || s.tries > 400 {
			t.Errorf("%d tries in a day", s.tries)
		}
		s.fail, s.titles = nil, nil
		s.wait(10 * time.Minute)
		s.told("Mooring shop/other: failed (ApplyFailed)")
	})
}

func TestRate(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{}, func(s *stage) {
		for i := range 60 { // another cause every 20 seconds
			s.pass(fmt.Sprintf("m%02d", i), failed, strings.Repeat("x", i+1))
			s.wait(20 * time.Second)
		}
		if n := len(s.titles); n < 15 || n > 21 {
			t.Errorf("%d messages in 20 minutes", n)
		}
		s.wait(10 * time.Minute)
		told := 0
		for _, text := range s.texts {
			told += strings.Count(text, "shop/m")
		}
		if told != 60 {
			t.Errorf("%d of 60 were told", told)
		}
	})
}

func TestSuspendedAndGone(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{}, func(s *stage) {
		for _, name := range []string{"a", "b", "c"} {
			s.pass(name, failed, denied)
		}
		s.wait(time.Minute)
		s.pass("a", v1alpha1.ReasonSuspended, "")
		s.Forget("shop", "b")
		s.wait(time.Hour)
		s.told("Mooring 3 Moorings: failed (ApplyFailed)")
		if s.Written.OpenCount != 1 {
			t.Errorf("%d open", s.Written.OpenCount)
		}
		s.Set(t.Context(), alarmOf(v1alpha1.AlarmSpec{Suspend: true}, v1alpha1.AlarmStatus{}))
		s.pass("c", applied, "")
		s.pass("d", failed, denied)
		s.wait(time.Hour)
		s.told("Mooring 3 Moorings: failed (ApplyFailed)")
		s.Set(t.Context(), alarmOf(v1alpha1.AlarmSpec{}, v1alpha1.AlarmStatus{}))
		s.wait(time.Hour)
		s.told("Mooring 3 Moorings: failed (ApplyFailed)", "Mooring shop/d: failed (ApplyFailed); shop/c: recovered (failed, ApplyFailed)")
	})
}

func TestWhatChangesWhileItIsSent(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{}, func(s *stage) {
		send, got := s.Send, make(chan struct{})
		s.Send = func(ctx context.Context, m alarm.Sent) error {
			<-got
			return send(ctx, m)
		}
		s.pass("prod", failed, denied)
		s.wait(time.Minute)
		s.pass("prod", applied, "") // while the message is on its way
		close(got)
		s.wait(time.Hour)
		s.told("Mooring shop/prod: failed (ApplyFailed)", "Mooring shop/prod: recovered (failed, ApplyFailed)")
	})
}

func TestNotesAreBounded(t *testing.T) {
	play(t, v1alpha1.AlarmSpec{Events: []v1alpha1.AlarmEvent{"applied"}}, func(s *stage) {
		for i := range 300 {
			s.pass(fmt.Sprint("m", i), applied, "", report.Event{Reason: applied, Note: fmt.Sprint("commit ", i)})
		}
		s.wait(time.Minute)
		if len(s.titles) != 1 || len(s.texts[0]) > 3600 {
			t.Errorf("%d messages: %v", len(s.titles), s.titles)
		}
	})
}
