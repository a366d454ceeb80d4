package proof

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render/check/proxy"
)

// finding is a route that leads to nothing, wherever that is so.
type finding struct {
	proxy       int
	destination destination
	// between clusters and routes.
	between bool
}

// evidence is where a finding is so.
type evidence struct {
	field            string
	states           int
	written, missing []Write
	least, undone    int // the size of written and missing
}

// note a finding in a state, or on the way to it.
func (l *look) note(f finding, field string, s stretch, state, from set) {
	e := l.found[f]
	if e == nil {
		e = &evidence{field: field, least: -1, undone: -1}
		l.found[f] = e
	}
	e.states++
	written, missing := state.count(), len(s.writes)-state.count()
	if f.between {
		written -= from.count()
	}
	if e.least < 0 || written < e.least {
		e.least = written
		if f.between {
			apart := newSet(len(s.writes))
			for i := range s.writes {
				if state.has(i) && !from.has(i) {
					apart.add(i)
				}
			}
			e.written = s.take(apart, true)
		} else {
			e.written = s.take(state, true)
		}
	}
	if e.undone < 0 || missing < e.undone {
		e.undone, e.missing = missing, s.take(state, false)
	}
}

// judge says whose fault the findings are.
func (l *look) judge() {
	if l.first == nil {
		return
	}
	var all []finding
	for f := range l.found {
		all = append(all, f)
	}
	slices.SortFunc(all, l.compare)
	for _, f := range all {
		plain := f
		plain.between = false
		if f.between && l.found[plain] != nil {
			continue // it is worse than that
		}
		before, after := l.first.leads(f), l.last.leads(f)
		list := &l.report.Broken
		switch {
		case before == nowhere, before == absent && after == nowhere:
			list = &l.report.Known
		case f.between && l.retired(f):
			list = &l.report.Retired
		}
		*list = l.found[f].violation(*list, f, l.proxies[f.proxy], after == nowhere)
	}
}

// violation is added to those of other proxies where they have the same. These stand together.
func (e *evidence) violation(to []Violation, f finding, p proxy.Proxy, stays bool) []Violation {
	d := f.destination
	v := Violation{
		Proxies: []proxy.Proxy{p}, Host: d.host, Listener: d.listener, Port: d.port, Object: d.object, Field: e.field, Cluster: d.cluster,
		Written: e.written, Missing: e.missing, Between: f.between, States: e.states, Stays: stays,
	}
	if len(to) == 0 {
		return append(to, v)
	}
	last := &to[len(to)-1]
	if last.Object != v.Object || last.Cluster != v.Cluster || last.Host != v.Host || last.Listener != v.Listener || last.Port != v.Port || last.Between != v.Between || last.Stays != v.Stays {
		return append(to, v)
	}
	last.Proxies = append(last.Proxies, p)
	last.States = max(last.States, v.States)
	if len(v.Written) < len(last.Written) {
		last.Written = v.Written
	}
	if len(v.Missing) < len(last.Missing) {
		last.Missing = v.Missing
	}
	return to
}

func (l *look) compare(a, b finding) int {
	x, y := a.destination, b.destination
	return cmp.Or(
		cmp.Compare(x.object.String(), y.object.String()), cmp.Compare(x.cluster, y.cluster),
		cmp.Compare(x.listener, y.listener), cmp.Compare(x.host, y.host), cmp.Compare(x.port, y.port), order(a.between, b.between), cmp.Compare(a.proxy, b.proxy),
	)
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// where a route leads in a state.
type where int

const (
	absent where = iota
	somewhere
	nowhere
)

func (a *answer) leads(f finding) where {
	for _, d := range a.tables[f.proxy].routes {
		if d.unfielded() == f.destination {
			if a.missing[f.proxy][d.cluster] {
				return nowhere
			}
			return somewhere
		}
	}
	return absent
}

// retired says that what the route is for is gone when the plan is through: the proxy has neither a service of that name and port nor routes for it.
func (l *look) retired(f finding) bool {
	d, config := f.destination, l.last.configs[f.proxy]
	if d.listener != "" {
		if !l.last.streams[f.proxy].Listeners[d.listener] {
			return true
		}
		names := strings.Split(d.host, ",")
		addresses := d.host == "" || strings.Contains(d.host, "/") // then the listener is all that says whose it is
		return !addresses && !slices.ContainsFunc(names, func(name string) bool { return config.Serves(name, d.port) })
	}
	return !config.Serves(d.host, d.port) && !slices.ContainsFunc(config.Hosts, func(vh proxy.VirtualHost) bool {
		return vh.Host == d.host && vh.Port == d.port
	})
}
