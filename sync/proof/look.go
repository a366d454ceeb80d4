package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// look asks the proxies state by state.
type look struct {
	course  *course
	options Options
	report  *Report

	config  *meshconfig.MeshConfig
	proxies []proxy.Proxy
	// alike shares route tables that were seen before: most writes change few.
	alike map[string]*table
	found map[finding]*evidence
	// first and last are what is told before and after the plan.
	first, last *answer
}

// answer is what all proxies are told in one state.
type answer struct {
	state  set
	tables []*table // by proxy
	// missing are the clusters that the proxy does not have, of those that any route led to so far.
	missing []map[string]bool
	configs []*proxy.Config
	streams []*proxy.Listening
}

// table is the routes of one proxy.
type table struct {
	routes []destination
	// clusters that they lead to, each with one of its targets.
	clusters map[string]proxy.Target
}

// destination tells a route apart.
type destination struct {
	host     string // of the virtual host, or for tcp and tls the names that tell connections apart
	listener string // for tcp and tls
	port     int
	object   render.ID
	cluster  string
	field    string
}

func newLook(c *course, o Options, r *Report) *look {
	return &look{course: c, options: o, report: r, alike: map[string]*table{}, found: map[finding]*evidence{}}
}

// walk through all chosen states.
func (l *look) walk(ctx context.Context, c choice) error {
	l.report.Possible, l.report.All = c.possible, c.all
	var worlds []*world.World
	for _, o := range l.course.worlds {
		worlds = append(worlds, l.world(o))
	}
	l.proxies = proxy.Proxies(worlds...)
	l.report.Proxies = len(l.proxies)
	// The ConfigMap is neither routed nor placed: it is read from all that lives.
	l.config, _ = l.options.Converter.Before(l.course.live).MeshConfig()

	begin := l.course.begin
	a, err := l.ask(ctx, begin, nil, nil)
	if err != nil {
		return err
	}
	l.first, l.last = a, a
	l.plain(a, stretch{})
	for i, s := range l.course.stretches {
		if err := l.stretch(ctx, s, begin, c.states[i]); err != nil {
			return err
		}
		begin = s.over(begin, s.whole())
	}
	return nil
}

// stretch looks at the states of one, and compares each with those before.
func (l *look) stretch(ctx context.Context, s stretch, begin objects, states []set) error {
	earlier := []*answer{{state: newSet(len(s.writes)), tables: l.last.tables, missing: l.last.missing}}
	for _, state := range states {
		a, err := l.ask(ctx, s.over(begin, state), state, earlier)
		if err != nil {
			return err
		}
		l.plain(a, s)
		l.between(a, s, earlier)
		earlier = append(earlier, a)
		l.last.configs, l.last.streams = nil, nil // what they hold is large, and only the end is asked for it
		l.last = a
	}
	return nil
}

func (l *look) world(o objects) *world.World {
	all := make([]*unstructured.Unstructured, 0, len(o))
	for _, u := range o {
		all = append(all, u)
	}
	return l.options.Converter.Before(&world.Cluster{Objects: all, MetadataOnly: l.course.live.MetadataOnly, Unread: l.course.live.Unread})
}

// ask all proxies in one state, also for the clusters that earlier routes lead to.
func (l *look) ask(ctx context.Context, o objects, state set, earlier []*answer) (*answer, error) {
	l.report.States++
	mesh, err := proxy.New(ctx, l.world(o), proxy.Options{MeshConfig: l.config})
	if err != nil {
		return nil, err
	}
	defer mesh.Close()
	a := &answer{state: state}
	for i, p := range l.proxies {
		config, err := mesh.Ask(ctx, p)
		if err != nil {
			return nil, err
		}
		streams, err := mesh.Listen(ctx, config)
		if err != nil {
			return nil, err
		}
		t, missing := l.read(config, streams)
		for _, target := range mesh.Lacks(config, led(i, earlier)) {
			missing[target.Cluster] = true
		}
		a.tables, a.missing = append(a.tables, t), append(a.missing, missing)
		a.configs, a.streams = append(a.configs, config), append(a.streams, streams)
	}
	return a, nil
}

// led are the targets of the routes that a proxy had in earlier states, one for each cluster.
func led(proxyAt int, earlier []*answer) []proxy.Target {
	seen := map[string]bool{}
	tables := map[*table]bool{}
	var all []proxy.Target
	for _, a := range earlier {
		t := a.tables[proxyAt]
		if tables[t] {
			continue
		}
		tables[t] = true
		for cluster, target := range t.clusters {
			if !seen[cluster] {
				seen[cluster] = true
				all = append(all, target)
			}
		}
	}
	return all
}

// read the routes of a proxy, and which clusters they miss.
func (l *look) read(c *proxy.Config, streams *proxy.Listening) (*table, map[string]bool) {
	t, missing := &table{clusters: map[string]proxy.Target{}}, map[string]bool{}
	known := map[destination]bool{}
	add := func(d destination, target proxy.Target) {
		d.object, d.cluster, d.field = target.Source.Object.ID, target.Cluster, target.Field
		if !known[d] {
			known[d] = true
			t.routes = append(t.routes, d)
		}
		t.clusters[target.Cluster] = target
		if !target.Exists {
			missing[target.Cluster] = true
		}
	}
	for vh, i := range c.Routes {
		for _, target := range vh.Routes[i].Targets {
			add(destination{host: vh.Host, port: vh.Port}, target)
		}
	}
	for _, s := range streams.Streams {
		for _, target := range s.Targets {
			add(destination{host: strings.Join(s.Names, ","), listener: s.Listener, port: s.Port}, target)
		}
	}
	key := fmt.Sprint(t.routes)
	if same := l.alike[key]; same != nil {
		return same, missing
	}
	l.alike[key] = t
	return t, missing
}

// plain notes the routes of a state that lead to nothing in it.
func (l *look) plain(a *answer, s stretch) {
	for i, t := range a.tables {
		if len(a.missing[i]) == 0 {
			continue
		}
		for _, d := range t.routes {
			if a.missing[i][d.cluster] {
				l.note(finding{proxy: i, destination: d.unfielded()}, d.field, s, a.state, nil)
			}
		}
	}
}

// between notes the routes of earlier states that lead to nothing once the clusters of this one have come.
func (l *look) between(a *answer, s stretch, earlier []*answer) {
	for _, from := range slices.Backward(earlier) { // the nearest first
		if !from.state.in(a.state) {
			continue
		}
		l.report.Pairs++
		for i, t := range from.tables {
			if len(a.missing[i]) == 0 || t == a.tables[i] {
				continue // with the same routes it is what plain says
			}
			for _, d := range t.routes {
				if a.missing[i][d.cluster] && !from.missing[i][d.cluster] {
					l.note(finding{proxy: i, destination: d.unfielded(), between: true}, d.field, s, a.state, from.state)
				}
			}
		}
	}
}

func (d destination) unfielded() destination {
	d.field = ""
	return d
}
