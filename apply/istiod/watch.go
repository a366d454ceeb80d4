package istiod

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

// The pace of the questions.
const (
	quickest = 40 * time.Millisecond
	slowest  = 2 * time.Second
	// share is how many times longer than an answer took the pause after it is: a large mesh's istiod has other work.
	share = 3
	// findEvery is how old the list of istiods may be.
	findEvery = 2 * time.Second
)

// instance is one istiod, while it is asked.
type instance struct {
	place
	mesh *Mesh
	line *line
	// reads are the kinds that it reads.
	reads map[schema.GroupKind]schema.GroupVersionKind
	// objects and services are what it has yet to show.
	objects, services unseen
	asked             bool // objects and services are known
	settling          *settling
	done              bool
	// proxies that it had when it was asked last.
	proxies []proxy
	failing time.Time // since when it has not answered
	failure error
	// unasked is why it cannot be asked.
	unasked string
}

// watch is one wait for the proxies.
type watch struct {
	mesh      *Mesh
	written   []apply.Written
	began     time.Time
	foundAt   time.Time
	found     found
	instances map[string]*instance
	// lost are the proxies of an istiod that went away, and until when they are waited for to come to another.
	lost map[owed]time.Time
}

func newWatch(m *Mesh, written []apply.Written) *watch {
	return &watch{mesh: m, written: written, began: time.Now(), instances: make(map[string]*instance), lost: make(map[owed]time.Time)}
}

func (w *watch) close() {
	for _, i := range w.instances {
		i.close()
	}
}

func (i *instance) close() {
	if i.line != nil {
		i.line.close()
		i.line = nil
	}
}

// run asks until all proxies have acknowledged. Where that cannot be asked, it says why.
func (w *watch) run(ctx context.Context) (unasked string, err error) {
	for {
		began := time.Now()
		over, unasked, err := w.round(ctx)
		if ctx.Err() != nil {
			return "", w.late()
		}
		if over || err != nil {
			return unasked, err
		}
		select {
		case <-ctx.Done():
			return "", w.late()
		case <-time.After(min(max(quickest, share*time.Since(began)), slowest)):
		}
	}
}

// round asks every istiod once.
func (w *watch) round(ctx context.Context) (over bool, unasked string, err error) {
	if err := w.refind(ctx); err != nil {
		var unaskable *unaskableError
		if errors.As(err, &unaskable) {
			return true, unaskable.reason, nil
		}
		if time.Since(w.began) > w.mesh.policy.Pause && len(w.instances) == 0 {
			return true, err.Error(), nil
		}
		return false, "", nil
	}
	if w.found.nobody {
		return true, "", nil
	}
	var g errgroup.Group
	for _, i := range w.instances {
		if i.done && len(w.lost) == 0 || i.unasked != "" {
			continue
		}
		g.Go(func() error {
			i.fail(i.look(ctx, w), ctx)
			return nil
		})
	}
	_ = g.Wait() // no goroutine returns an error
	w.findLost()
	return w.judge()
}

// refind looks for the istiods, when the last look is old or one of them does not answer.
func (w *watch) refind(ctx context.Context) error {
	old := time.Since(w.foundAt) > findEvery
	for _, i := range w.instances {
		old = old || !i.failing.IsZero() && w.foundAt.Before(i.failing)
	}
	if !old {
		return nil
	}
	now, err := w.mesh.find(ctx)
	if err != nil {
		return err
	}
	w.found, w.foundAt = now, time.Now()
	there := make(map[string]bool)
	for _, p := range now.places {
		there[p.key] = true
		if w.instances[p.key] == nil {
			w.instances[p.key] = &instance{place: p, mesh: w.mesh}
		}
	}
	for key, i := range w.instances {
		if !there[key] {
			w.lose(i)
			i.close()
			delete(w.instances, key)
		}
	}
	return nil
}

// lose remembers the proxies of an istiod that has gone before they had acknowledged.
func (w *watch) lose(i *instance) {
	if i.done {
		return
	}
	for _, p := range i.proxies {
		w.lost[owed{cluster: p.cluster, proxy: p.id}] = time.Now().Add(w.mesh.policy.Pause)
	}
}

// findLost strikes out the lost proxies that have come to another istiod, and those that have not come back in time. The
// istiod that they came to is looked at anew, also if all of its own had acknowledged.
func (w *watch) findLost() {
	if len(w.lost) == 0 {
		return
	}
	for _, i := range w.instances {
		for _, p := range i.proxies {
			key := owed{cluster: p.cluster, proxy: p.id}
			if _, lost := w.lost[key]; lost {
				delete(w.lost, key)
				i.done, i.settling = false, nil
			}
		}
	}
	for key, until := range w.lost {
		if time.Now().After(until) {
			delete(w.lost, key)
		}
	}
}

// look asks the istiod how far it is.
func (i *instance) look(ctx context.Context, w *watch) (err error) {
	if i.line == nil {
		if i.line, err = i.mesh.open(ctx, i.place); err != nil {
			return err
		}
	}
	s, err := i.line.sample(ctx)
	if err != nil {
		return err
	}
	i.proxies = s.proxies
	if i.done || len(s.proxies) == 0 {
		i.settling = nil // who connects now is told what istiod knows now
		return nil
	}
	if !i.asked {
		if i.reads, err = i.line.reads(ctx); err != nil {
			return err
		}
		i.objects, i.services = unseenOf(w.written, i.reads)
		i.asked = true
	}
	if i.settling == nil {
		seen, err := i.see(ctx, w.began)
		if err != nil || !seen {
			return err
		}
		since := time.Now()
		if s, err = i.line.sample(ctx); err != nil {
			return err
		}
		i.settling = settle(since, s)
		return nil
	}
	i.done = i.settling.take(s)
	return nil
}

// fail keeps what became of a question. A line that does not answer is opened anew.
func (i *instance) fail(err error, ctx context.Context) {
	if err == nil || ctx.Err() != nil {
		i.failing, i.failure = time.Time{}, nil
		return
	}
	i.close()
	i.settling = nil // it may have been restarted: what it has read is asked again
	i.asked = false
	i.failure = err
	if i.failing.IsZero() {
		i.failing = time.Now()
	}
	var unaskable *unaskableError
	if errors.As(err, &unaskable) {
		i.unasked = fmt.Sprintf("%s cannot be asked: %s", i.name, unaskable.reason)
	} else if time.Since(i.failing) > i.mesh.policy.Pause {
		i.unasked = fmt.Sprintf("%s does not answer: %v", i.name, err)
	}
}

// judge says whether there is anybody left to wait for.
func (w *watch) judge() (over bool, unasked string, err error) {
	if len(w.instances) == 0 || len(w.lost) > 0 {
		return false, "", nil
	}
	for _, i := range w.instances {
		switch {
		case i.unasked != "":
			if unasked == "" || i.unasked < unasked {
				unasked = i.unasked
			}
		case i.done:
		case i.failure == nil && i.line != nil && len(i.proxies) == 0:
		default:
			return false, "", nil
		}
	}
	return true, unasked, nil
}

// late says who is missing, when the time is over.
func (w *watch) late() error {
	e := &LateError{}
	for _, i := range w.instances {
		switch {
		case i.done || i.unasked != "":
		case i.settling != nil:
			late := i.settling.late()
			e.Late = append(e.Late, late...)
			if len(late) == 0 {
				e.Restless = append(e.Restless, i.name)
			}
		case len(i.proxies) > 0:
			e.Unseen = append(e.Unseen, i.unseen()...)
			e.Late = append(e.Late, lateOf(i.proxies)...)
		}
	}
	switch {
	case len(w.instances) == 0 && len(w.found.unready) > 0:
		e.Unready = "no istiod is ready: " + strings.Join(w.found.unready, ", ")
	case len(e.Late)+len(e.Unseen)+len(e.Restless) == 0:
		e.Unready = "no istiod answered in time"
	}
	return e.sorted()
}
