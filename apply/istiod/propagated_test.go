package istiod_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	pilot "github.com/mooring-dev/mooring/test/istiod"
)

// TestPropagated asks one real istiod, to which proxies of all sorts connect.
func TestPropagated(t *testing.T) {
	w := newWorld(t)
	p := pilot.Start(t, w.cluster, pilot.Options{})
	shop := w.write(serviceOf("shop"))
	sub := func(name string, test func(w *world)) {
		t.Run(name, func(t *testing.T) {
			inner := *w
			inner.t = t
			test(&inner)
		})
	}
	sub("no proxy: nothing to wait for", func(w *world) {
		if took := w.propagated(w.by(istiod.Policy{}, p), shop, w.write(rule("shop", "early"))); took > patience {
			t.Errorf("took %s", took)
		}
	})
	sub("whoever is told it has it", func(w *world) {
		c := pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
		w.propagated(w.by(istiod.Policy{}, p), shop)
		for _, subset := range []string{"a", "b", "c"} {
			w.propagated(w.by(istiod.Policy{}, p), w.write(rule("shop", subset)))
			if !w.hasSubset(c, "shop", subset) {
				w.t.Errorf("subset %s is said to be everywhere, and the proxy does not have it", subset)
			}
		}
		w.propagated(w.by(istiod.Policy{}, p)) // whatever lives is acknowledged
	})
	sub("and has let go of what was deleted", func(w *world) {
		c := pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
		gone := w.write(rule("shop", "gone"))
		w.propagated(w.by(istiod.Policy{}, p), gone)
		w.propagated(w.by(istiod.Policy{}, p), w.delete(gone, "v1"))
		if w.hasSubset(c, "shop", "gone") {
			w.t.Error("the proxy has the subset of a deleted rule")
		}
	})
	sub("a change that concerns nobody", func(w *world) {
		pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
		// Only gateways are told of a Gateway, and a change of labels is told to nobody.
		gateway := `{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: web, namespace: NS, labels: {a: "%d"}}, spec: {selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}}`
		for n := range 2 {
			if took := w.propagated(w.by(istiod.Policy{}, p), w.write(fmt.Sprintf(gateway, n))); took > patience {
				w.t.Errorf("took %s", took)
			}
		}
	})
	sub("for another revision, or deleted since", func(w *world) {
		pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
		other := `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: other, namespace: NS, labels: {istio.io/rev: canary}}, spec: {host: other}}`
		since := w.write(rule("since"))
		w.delete(since, "v1")
		if took := w.propagated(w.by(istiod.Policy{}, p), w.write(other), since); took > patience {
			w.t.Errorf("took %s", took)
		}
	})
	sub("who never answers", func(w *world) { neverAnswers(w, p) })
	sub("who refuses", func(w *world) { refuses(w, p) })
	sub("istiod has not seen it", func(w *world) { notSeen(w, p) })
	sub("the run ends", func(w *world) {
		pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
		ctx, cancel := context.WithCancelCause(w.t.Context())
		enough := errors.New("enough")
		time.AfterFunc(100*time.Millisecond, func() { cancel(enough) })
		began := time.Now()
		err := w.by(istiod.Policy{}, p).Propagated(ctx, []apply.Written{newer(w.write(rule("shop", "late")))})
		if !errors.Is(err, enough) || time.Since(began) > patience {
			w.t.Errorf("ended after %s with %v", time.Since(began), err)
		}
	})
}

// neverAnswers has two proxies that hang: one is named, and the other counted.
func neverAnswers(w *world, p *pilot.Istiod) {
	for _, name := range []string{"hung", "also-hung"} {
		pilot.Dial(w.t, p, pilot.Proxy{Namespace: w.namespace, Name: name}, pilot.Behaviour{Answer: func(pilot.Response) error { return pilot.ErrSilent }})
	}
	eventually(w.t, "two proxies are connected", func() bool { return connected(w.t, p) == 2 })
	began := time.Now()
	text := ""
	for range 2 {
		err := w.by(istiod.Policy{Timeout: 1500 * time.Millisecond}, p).Propagated(w.t.Context(), []apply.Written{w.write(rule("shop", "hung"))})
		late, is := errors.AsType[*istiod.LateError](err)
		if !is || len(late.Late) != 2 {
			w.t.Fatalf("the error is %v", err)
		}
		want := fmt.Sprintf("proxy also-hung.%s (sidecar) has not acknowledged CDS (and 1 other proxies)", w.namespace)
		if err.Error() != want || text != "" && err.Error() != text {
			w.t.Errorf("the error is\n%v, want\n%s", err, want)
		}
		text = err.Error()
	}
	if took := time.Since(began); took < 3*time.Second || took > patience {
		w.t.Errorf("waited for %s, and the timeouts are 3s together", took)
	}
}

// refuses has one proxy that rejects its clusters from some moment on, and one that hangs: the one that said why is named.
func refuses(w *world, p *pilot.Istiod) {
	broken := make(chan struct{})
	why := func(r pilot.Response) error {
		select {
		case <-broken:
			if r.Type == "CDS" {
				return errors.New("duplicate cluster shop found")
			}
		default:
		}
		return nil
	}
	pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace, Name: "refuser"}, pilot.Behaviour{Answer: why})
	w.propagated(w.by(istiod.Policy{}, p), w.write(rule("shop", "fine")))
	close(broken)
	err := w.by(istiod.Policy{Timeout: 2 * time.Second}, p).Propagated(w.t.Context(), []apply.Written{w.write(rule("shop", "refused"))})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("proxy refuser.%s (sidecar) has not acknowledged CDS", w.namespace)) ||
		!strings.HasSuffix(err.Error(), "it said: duplicate cluster shop found") {
		w.t.Errorf("the error is %v", err)
	}
}

// notSeen waits for a version that nobody has written yet, until somebody does.
func notSeen(w *world, p *pilot.Istiod) {
	c := pilot.Connect(w.t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	before := newer(w.write(rule("shop", "before")))
	err := w.by(istiod.Policy{Timeout: 2 * time.Second}, p).Propagated(w.t.Context(), []apply.Written{before})
	if want := fmt.Sprintf("does not show DestinationRule/%s/shop as it was written", w.namespace); err == nil || !strings.HasSuffix(err.Error(), want) {
		w.t.Errorf("the error is %v, want %s", err, want)
	}
	before = next(w.write(rule("shop", "before")))
	written := make(chan struct{})
	time.AfterFunc(700*time.Millisecond, func() {
		defer close(written)
		w.write(rule("shop", "after"))
	})
	if took := w.propagated(w.by(istiod.Policy{}, p), before); took < 700*time.Millisecond {
		w.t.Errorf("did not wait for the write: %s", took)
	}
	if !w.hasSubset(c, "shop", "after") {
		w.t.Error("the proxy does not have what was waited for")
	}
	<-written
}

// next is the version of the next write, or an older one: the API server counts all writes.
func next(x apply.Written) apply.Written {
	n, err := strconv.ParseUint(x.ResourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	x.ResourceVersion = strconv.FormatUint(n+1, 10)
	return x
}

// newer is a version that the API server has not given yet.
func newer(x apply.Written) apply.Written {
	x.ResourceVersion += "0"
	return x
}

// TestNoGoroutineStays ends calls in all ways: well, by a timeout, by an istiod that dies.
func TestNoGoroutineStays(t *testing.T) {
	w := newWorld(t)
	p := pilot.Start(t, w.cluster, pilot.Options{})
	pilot.Connect(t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	written := w.write(rule("shop", "a"))
	before := goleak.IgnoreCurrent()
	w.propagated(w.by(istiod.Policy{}, p), written)
	if err := w.by(istiod.Policy{Timeout: 500 * time.Millisecond}, p).Propagated(t.Context(), []apply.Written{newer(written)}); err == nil {
		t.Error("no error")
	}
	p.Kill()
	m := w.by(istiod.Policy{Pause: 300 * time.Millisecond}, p)
	if err := m.Propagated(t.Context(), nil); err != nil || !strings.Contains(m.Unasked(), "connection refused") {
		t.Errorf("a dead istiod: %v, not asked because %q", err, m.Unasked())
	}
	goleak.VerifyNone(t, before)
}

// TestNeverAtRest has a mesh in which something is always being pushed.
func TestNeverAtRest(t *testing.T) {
	w := newWorld(t)
	p := pilot.Start(t, w.cluster, pilot.Options{Env: []string{"PILOT_DEBOUNCE_MAX=400ms"}})
	w.write(serviceOf("shop"))
	w.write(serviceOf("busy"))
	c := pilot.Connect(t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	hung := pilot.Dial(t, p, pilot.Proxy{Namespace: w.namespace, Name: "hung"}, pilot.Behaviour{Answer: func(pilot.Response) error { return pilot.ErrSilent }})
	eventually(t, "two proxies are connected", func() bool { return connected(t, p) == 2 })
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		pace := time.NewTicker(50 * time.Millisecond) // less than istiod waits after an event
		defer pace.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			w.write(rule("busy", fmt.Sprintf("s%d", n)))
			select {
			case <-ctx.Done():
			case <-pace.C:
			}
		}
	})
	defer writer.Wait()
	defer cancel()
	// One that never answers is not overlooked in all the bustle.
	err := w.by(istiod.Policy{Timeout: 6 * time.Second}, p).Propagated(t.Context(), []apply.Written{w.write(rule("shop", "a"))})
	if err == nil || !strings.Contains(err.Error(), "proxy hung."+w.namespace+" (sidecar) has not acknowledged CDS") {
		t.Errorf("the error is %v", err)
	}
	hung.Close()
	eventually(t, "it is gone", func() bool { return connected(t, p) == 1 })
	for _, subset := range []string{"b", "c", "d"} {
		w.propagated(w.by(istiod.Policy{}, p), w.write(rule("shop", subset)))
		if !w.hasSubset(c, "shop", subset) {
			t.Errorf("subset %s is said to be everywhere, and the proxy does not have it", subset)
		}
	}
}

// BenchmarkPropagated is a DestinationRule's way to every proxy and back, as a gate sees it.
func BenchmarkPropagated(b *testing.B) {
	for _, clients := range []int{1, 50} {
		b.Run(fmt.Sprintf("clients-%d", clients), func(b *testing.B) {
			w := newWorld(b)
			p := pilot.Start(b, w.cluster, pilot.Options{})
			w.write(serviceOf("shop"))
			for n := range clients {
				pilot.Connect(b, p, pilot.Proxy{Namespace: w.namespace, Name: fmt.Sprintf("client-%d", n)}, pilot.Behaviour{})
			}
			w.propagated(w.by(istiod.Policy{}, p))
			var most time.Duration
			for n := 0; b.Loop(); n++ {
				most = max(most, w.propagated(w.by(istiod.Policy{}, p), w.write(rule("shop", fmt.Sprintf("s%d", n)))))
			}
			b.ReportMetric(float64(most.Milliseconds()), "ms-most")
		})
	}
}
