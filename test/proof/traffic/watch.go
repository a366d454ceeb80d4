package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mooring-dev/mooring/test/istiod"
)

// Kind is a sort of fault; the package comment says what each means.
type Kind string

// The kinds.
const (
	Dangling Kind = "dangling"
	Retired  Kind = "retired"
	Hidden   Kind = "hidden"
	Cold     Kind = "cold"
	Unserved Kind = "unserved"
	Bare     Kind = "bare"
)

// Kinds are all, the gravest first.
func Kinds() []Kind { return []Kind{Dangling, Unserved, Bare, Cold, Retired, Hidden} }

// Fault is what was wrong for a proxy for the length of some responses.
type Fault struct {
	Kind  Kind
	Proxy string
	// What is the use, or the domain.
	What string
	// First is the response after which it was so, for Responses responses and For a time.
	First     istiod.Response
	Responses int
	For       time.Duration
	// Lasting faults are there when all is at rest.
	Lasting bool
}

// String says all of it in a line.
func (f Fault) String() string {
	lasting := ""
	if f.Lasting {
		lasting = ", for ever"
	}
	return fmt.Sprintf("%s: %s: %s, since response %s, for %d responses and %s%s", f.Proxy, f.Kind, f.What, f.First, f.Responses, f.For.Round(time.Millisecond), lasting)
}

// Watch looks at one proxy. Its Seen is for [istiod.Behaviour].
type Watch struct {
	proxy istiod.Proxy

	mu     sync.Mutex
	reader reader
	last   moment   // what the proxy has now
	passed []moment // since the commit began, the one before it first
}

// moment is what a proxy had after a response.
type moment struct {
	after istiod.Response
	// missing and cold are uses of clusters that are not there, or have no endpoints yet.
	missing, cold map[Use]bool
	served        map[string]bool
	places        map[string]bool
	clusters      map[string]bool
}

// NewWatch makes a Watch over a proxy.
func NewWatch(p istiod.Proxy) *Watch { return &Watch{proxy: p} }

// Seen looks at the state after a response.
func (w *Watch) Seen(r istiod.Response, s *istiod.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.reader.read(s)
	m := moment{after: r, missing: map[Use]bool{}, cold: map[Use]bool{}, served: all.served, places: map[string]bool{}, clusters: map[string]bool{}}
	for _, place := range all.places {
		m.places[place] = true
	}
	for name := range s.Clusters {
		m.clusters[name] = true
	}
	for _, u := range all.uses {
		if !m.clusters[u.Cluster] {
			m.missing[u] = true
		} else if u.Rule != "" && !s.Warm(u.Cluster) {
			m.cold[u] = true
		}
	}
	w.last = m
	w.passed = append(w.passed, m)
}

// Begin begins a commit.
func (w *Watch) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed = []moment{w.last}
}

// Commit is what a proxy went through while one was applied.
type Commit struct {
	Proxy  string
	Faults []Fault
	// Responses in words, with what was wrong after each.
	Responses []string
}

// End ends a commit, when all is at rest. stays says of a VirtualService, as namespace/name, that the commit does not delete it.
func (w *Watch) End(stays func(rule string) bool) Commit {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Commit{Proxy: w.proxy.String()}
	first, final := w.passed[0], w.last
	faults := map[string]*Fault{}
	for i, m := range w.passed {
		lasts := time.Duration(0)
		if i+1 < len(w.passed) {
			lasts = w.passed[i+1].after.At.Sub(m.after.At)
		}
		line := m.after.String()
		for what, kind := range m.faults(first, final, stays) {
			f := faults[what]
			if f == nil {
				f = &Fault{Kind: kind, Proxy: c.Proxy, What: what, First: m.after}
				faults[what] = f
			}
			f.Responses, f.For, f.Lasting = f.Responses+1, f.For+lasts, f.Lasting || i == len(w.passed)-1
			line += fmt.Sprintf("\n      %s: %s", kind, what)
		}
		if i > 0 {
			c.Responses = append(c.Responses, line)
		}
	}
	for _, f := range faults {
		c.Faults = append(c.Faults, *f)
	}
	slices.SortFunc(c.Faults, func(a, b Fault) int { return cmp.Or(a.First.N-b.First.N, strings.Compare(a.What, b.What)) })
	return c
}

// faults of a moment of a commit, which began with first and ended with final.
func (m moment) faults(first, final moment, stays func(string) bool) map[string]Kind {
	out := map[string]Kind{}
	for u := range m.missing {
		taken := !final.clusters[u.Cluster] && !final.missing[u]
		switch {
		case u.Rule == "" && taken:
			out[u.String()] = Retired
		case u.Rule != "" && taken && !final.places[u.Place] && stays(u.Rule):
			out[u.String()] = Hidden
		default:
			out[u.String()] = Dangling
		}
	}
	for u := range m.cold {
		if first.places[u.Place] {
			out[u.String()] = Cold
		}
	}
	for domain, ruled := range first.served {
		after, ok := final.served[domain]
		if !ok {
			continue
		}
		now, ok := m.served[domain]
		switch {
		case !ok:
			out[domain] = Unserved
		case ruled && after && !now:
			out[domain] = Bare
		}
	}
	return out
}

// Clusters that the proxy has now, sorted.
func (w *Watch) Clusters() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.last.clusters))
}
