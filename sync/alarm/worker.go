package alarm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// How long sending is tried.
const (
	// patience is how long one try may take, with the reading of the Secret.
	patience = 20 * time.Second
	// firstPause after a try that failed; each further one is twice as long, up to maxPause.
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
	// maxTries of one message: 35 minutes. What still holds then goes into the next one.
	maxTries = 12
	// resend is how often an Alertmanager is told what is still open.
	resend = time.Minute
)

// worker speaks for one Alarm. Its fields are guarded by the Dispatcher's mu, except for those that are set once.
type worker struct {
	*Dispatcher
	key  types.NamespacedName
	wake chan struct{}
	stop context.CancelFunc

	alarm     *v1alpha1.Alarm
	selectors []labels.Selector
	words     *words
	book      *book
	batch     *batch // what is being sent; nil when nothing is
	// at is when the batch is tried again, or a new one may be begun.
	at time.Time
	// resendAt is when an Alertmanager is told again.
	resendAt time.Time
	// checkAt is when the Secret is looked at without anything to send; zero when it is known to be good.
	checkAt time.Time
	// misses are the tries since the last one that succeeded.
	misses int
	statusBook
}

func newWorker(d *Dispatcher, a *v1alpha1.Alarm) *worker {
	w := &worker{Dispatcher: d, key: client.ObjectKeyFromObject(a), wake: make(chan struct{}, 1), book: newBook()}
	w.written = *a.Status.DeepCopy()
	w.status = *a.Status.DeepCopy()
	for _, o := range a.Status.Open {
		if p, ok := placeOf(o); ok {
			w.book.open[p] = fault{event: o.Event, reason: o.Reason, since: o.Since.Time}
		}
	}
	d.Metrics.begin(w.key)
	return w
}

// set takes up a spec. What was told stays told.
func (w *worker) set(a *v1alpha1.Alarm) {
	w.alarm = a.DeepCopy()
	w.blocked, w.trouble, w.unfit = nil, nil, nil
	s := &w.alarm.Spec
	w.book.events, w.book.all = s.Events, s.Alertmanager != nil
	w.book.groupWait, w.book.groupInterval = s.GroupWait.Duration, s.GroupInterval.Duration
	if b := w.batch; b != nil { // made of the old words, for the old receiver
		w.book.notes = append(b.notes, w.book.notes...)
		w.batch = nil
	}
	w.at, w.resendAt, w.checkAt, w.misses = time.Time{}, time.Time{}, time.Now(), 0
	var err error
	if w.words, err = newWords(s.Template); err != nil {
		w.unfit = &problem{v1alpha1.AlarmReasonInvalidTemplate, err.Error() + "; until it is mended, messages have the agent's own words"}
	}
	w.selectors = nil
	for i, m := range s.Moorings {
		selector := labels.Nothing()
		if m.LabelSelector != nil {
			if selector, err = metav1.LabelSelectorAsSelector(m.LabelSelector); err != nil {
				w.blocked = &problem{v1alpha1.AlarmReasonInvalidSelector, fmt.Sprintf("read spec.moorings[%d].labelSelector: %v", i, err)}
				selector = labels.Nothing()
			}
		}
		w.selectors = append(w.selectors, selector)
	}
	if beyond := slices.ContainsFunc(s.Namespaces, func(n string) bool { return n != w.key.Namespace }); beyond && !w.across(w.key.Namespace) {
		w.blocked = &problem{v1alpha1.AlarmReasonNotAllowed, fmt.Sprintf(
			"spec.namespaces names others than %s, and Alarms of %[1]s may not look at them: leave them out, or have the agent run with --alarms-across=%[1]s", w.key.Namespace)}
	}
	w.hearAll()
	w.poke()
}

// hearAll compares the book with all that is known.
func (w *worker) hearAll() {
	if w.blocked != nil {
		return
	}
	for _, p := range w.book.places() {
		if m := w.moorings[p.mooring]; m == nil || !w.picks(m) {
			w.book.hear(p, level{state: gone}, time.Now())
		}
	}
	for _, m := range w.moorings {
		w.hear(m, nil)
	}
}

// hear of a Mooring.
func (w *worker) hear(m *mooring, happened []note) {
	switch {
	case w.blocked != nil:
		return
	case !w.picks(m):
		w.forget(m.name)
		return
	}
	now := time.Now()
	for a, l := range m.levels {
		w.book.hear(place{m.name, a}, l, now)
	}
	if !w.alarm.Spec.Suspend {
		for _, n := range happened {
			w.book.hearNote(n)
		}
	}
	w.poke()
}

// forget a Mooring that is gone or no longer picked.
func (w *worker) forget(name types.NamespacedName) {
	for _, a := range []aspect{aspectReady, aspectDrift, aspectFight, aspectUnmanaged} {
		w.book.hear(place{name, a}, level{state: gone}, time.Now())
	}
	w.poke()
}

// picks says whether the Alarm is about a Mooring.
func (w *worker) picks(m *mooring) bool {
	s := w.alarm.Spec
	if len(s.Namespaces) == 0 && m.name.Namespace != w.key.Namespace {
		return false
	}
	if len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, m.name.Namespace) && !slices.Contains(s.Namespaces, v1alpha1.AnyNamespace) {
		return false
	}
	for i, sel := range s.Moorings {
		if sel.Name == m.name.Name || w.selectors[i].Matches(labels.Set(m.labels)) {
			return true
		}
	}
	return len(s.Moorings) == 0
}

// poke has run look at the book.
func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run speaks until ctx ends.
func (w *worker) run(ctx context.Context) {
	for {
		timer := time.NewTimer(w.next())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-w.wake:
		case <-timer.C:
		}
		timer.Stop()
		if j := w.job(); j != nil {
			err := w.do(ctx, j)
			if ctx.Err() != nil {
				return
			}
			w.settle(j, err)
		}
		w.writeStatus(ctx)
	}
}

// idle is how long a worker sleeps that has nothing to do.
const idle = time.Hour

// next is how long nothing is to be done.
func (w *worker) next() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	at := now.Add(idle)
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	if !w.statusAt.IsZero() {
		sooner(w.statusAt)
	}
	if w.blocked == nil && !w.alarm.Spec.Suspend {
		if !w.checkAt.IsZero() {
			sooner(w.checkAt)
		}
		if w.batch != nil {
			sooner(w.at)
		} else if due, ok := w.book.due(now); ok {
			sooner(later(due, w.at))
		}
		if w.resends() {
			sooner(w.resendAt)
		}
	}
	return max(0, at.Sub(now))
}

func (w *worker) resends() bool {
	return w.alarm.Spec.Alertmanager != nil && w.batch == nil && len(w.book.open) > 0
}

// job is something to be sent, or, with neither batch nor open faults, only a look at where it would be sent.
type job struct {
	alarm *v1alpha1.Alarm
	words *words
	batch *batch
	// open are the faults that an Alertmanager is told again.
	open map[place]fault
}

// job that is due; nil when none is.
func (w *worker) job() *job {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked != nil || w.alarm.Spec.Suspend {
		return nil
	}
	now := time.Now()
	if w.batch == nil && !w.at.After(now) {
		if due, ok := w.book.due(now); ok && !due.After(now) {
			w.batch = w.book.take()
		}
	}
	j := &job{alarm: w.alarm, words: w.words}
	if w.alarm.Spec.Alertmanager != nil {
		j.open = maps.Clone(w.book.open)
	}
	switch {
	case w.batch != nil && !w.at.After(now):
		j.batch = w.batch
	case w.resends() && !w.resendAt.After(now):
	case !w.checkAt.IsZero() && !w.checkAt.After(now):
		j.open = nil
	default:
		return nil
	}
	return j
}

// do a job, within the time that it may take.
func (w *worker) do(ctx context.Context, j *job) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := w.receivers.receiver(ctx, j.alarm)
	if err != nil || j.batch == nil && len(j.open) == 0 {
		return err
	}
	return r.send(ctx, j)
}

// settle what became of a job.
func (w *worker) settle(j *job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.alarm != w.alarm {
		return // there is another spec by now, and everything was begun anew
	}
	now := time.Now()
	if err != nil {
		w.failed(j, err, now)
		return
	}
	w.trouble, w.checkAt, w.misses, w.status.LastError = nil, time.Time{}, 0, ""
	w.resendAt = now.Add(resend)
	if j.batch == nil {
		return
	}
	w.batch, w.at = nil, time.Time{}
	w.book.told(j.batch, now)
	for _, c := range j.batch.changes { // what it was like when the message was made may be over
		l := level{state: gone}
		if m := w.moorings[c.place.mooring]; m != nil && w.picks(m) {
			l = m.levels[c.place.aspect]
		}
		w.book.hear(c.place, l, now)
	}
	w.status.Sent++
	w.status.LastSent = &metav1.Time{Time: now}
	w.Metrics.sent.WithLabelValues(w.key.Namespace, w.key.Name).Inc()
}

// failed is a try that came to nothing.
func (w *worker) failed(j *job, err error, now time.Time) {
	w.trouble = problemOf(err)
	w.misses++
	if w.checkAt = now.Add(pause(w.misses)); j.batch == nil && len(j.open) == 0 {
		return
	}
	w.resendAt = now.Add(min(resend, pause(w.misses)))
	w.status.LastError = w.trouble.message
	w.status.Failed++
	w.Metrics.failed.WithLabelValues(w.key.Namespace, w.key.Name).Inc()
	w.Log.Info("an alarm could not be sent", "alarm", w.key.String(), "why", w.trouble.message)
	if j.batch == nil {
		return
	}
	j.batch.tries++
	w.at = now.Add(pause(w.misses))
	if j.batch.tries >= maxTries {
		w.book.dropped += len(j.batch.notes)
		w.batch = nil
	}
}

// pause after so many tries that failed.
func pause(tries int) time.Duration {
	return min(maxPause, firstPause<<min(tries-1, 10))
}
