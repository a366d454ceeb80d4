package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// DefaultLimit of states for one plan.
const DefaultLimit = 300

// Options of a proof. The zero value is right for most.
type Options struct {
	// Limit of the states that are looked at; 0 means DefaultLimit. The state before the plan is not counted.
	Limit int
	// Seed of what is chosen at random.
	Seed uint64
	// Converter remembers conversions from proof to proof; nil for one of its own.
	Converter *world.Converter
}

// Report is what a proof found.
type Report struct {
	// Writes are those of the plan that proxies are told of, Stretches the parts of the plan that no propagated gate divides.
	Writes, Stretches int
	// States that were looked at, with the one before the plan, and Pairs of an earlier and a later state: clusters of the one with the routes of the other.
	States, Pairs int
	// All says that there are no other states. Possible is how many there are, rounded where they are very many.
	All      bool
	Possible float64
	// Proxies that were asked in each state.
	Proxies int
	// Broken are the routes that lead to nothing because of the plan.
	Broken []Violation
	// Retired are those that do so only between clusters and routes, of virtual hosts that go with the plan.
	Retired []Violation
	// Known are those that lead to nothing before the plan already, or only because the commit wants it so.
	Known []Violation
	// After are the objects of the kinds that routes and clusters are made of, as the proof takes the plan to leave them.
	After []*unstructured.Unstructured
	// Unread are the kinds, each with the reason, that nobody could read: routes that depend on them are not proved.
	Unread map[schema.GroupKind]string
}

// Write is one write of a plan.
type Write struct {
	ID     render.ID
	Action apply.Action
	Wave   string
}

// String reads "update DestinationRule/shop/web (wave objects)".
func (w Write) String() string {
	return fmt.Sprintf("%s %s (wave %s)", w.Action, w.ID, w.Wave)
}

// Violation is a route that leads to nothing.
type Violation struct {
	// Proxies that are told so, at least one.
	Proxies []proxy.Proxy
	// Host and Port of the virtual host. A route of tcp or tls is in a Listener, and Host are the names or addresses that tell its connections apart, if any.
	Host     string
	Listener string
	Port     int
	// Object is the VirtualService, and Field the path of the destination in it.
	Object render.ID
	Field  string
	// Cluster that the proxies do not have.
	Cluster string
	// Written are the writes of the stretch that have arrived in the smallest state that is so, and Missing those that have not in the
	// largest. All earlier stretches have.
	Written, Missing []Write
	// Between says that it is so only while clusters have come and routes have not. Then Written are the writes that the clusters tell of and the routes do
	// not yet.
	Between bool
	// States in which it is so, or pairs of states, at most of all proxies.
	States int
	// Stays says that it is so after the plan too.
	Stays bool
}

// String says it in one line.
func (v Violation) String() string {
	var b strings.Builder
	who := v.Proxies[0].String()
	if more := len(v.Proxies) - 1; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	where := fmt.Sprintf("%s:%d", v.Host, v.Port)
	if v.Listener != "" {
		where = strings.TrimSpace("listener " + v.Listener + " " + v.Host)
	}
	fmt.Fprintf(&b, "%s %s: %s would have a route on %s to %s, which is not there", v.Object, v.Field, who, where, v.Cluster)
	switch {
	case v.Between:
		fmt.Fprintf(&b, " between clusters and routes, where they learn at once of: %s", list(v.Written))
	case len(v.Written) > 0 && len(v.Missing) > 0:
		fmt.Fprintf(&b, " after %s and before %s", list(v.Written), list(v.Missing))
	case len(v.Written) > 0:
		fmt.Fprintf(&b, " after %s", list(v.Written))
	}
	if v.Stays {
		b.WriteString("; it stays so after the plan")
	}
	return b.String()
}

// list of writes, of many the first.
func list(all []Write) string {
	const most = 3
	var names []string
	for _, w := range all[:min(len(all), most)] {
		names = append(names, w.String())
	}
	text := strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// OK says that the plan breaks no route in any state that was looked at.
func (r *Report) OK() bool { return len(r.Broken) == 0 }

// String is the report in a line, and one for each broken route.
func (r *Report) String() string {
	var b strings.Builder
	b.WriteString(counted(r.States, "state") + " looked at")
	if !r.All {
		fmt.Fprintf(&b, " of %.3g", r.Possible)
	}
	fmt.Fprintf(&b, ", %s in each; ", counted(r.Proxies, "kind")+" of proxies")
	if r.OK() {
		b.WriteString("no route to nothing in any of them")
	} else {
		b.WriteString(counted(len(r.Broken), "route") + " to nothing:")
	}
	for _, v := range r.Broken {
		b.WriteString("\n  " + v.String())
	}
	if n := len(r.Retired); n > 0 {
		fmt.Fprintf(&b, "\n%s of virtual hosts that go with the plan: for a moment, while clusters have gone and routes have not", counted(n, "route"))
	}
	if n := len(r.Known); n > 0 {
		fmt.Fprintf(&b, "\n%s to nothing whatever the order: so it was before, or the commit wants it so", counted(n, "route"))
	}
	for _, gk := range unreadKinds(r.Unread) {
		fmt.Fprintf(&b, "\nnot proved: %s was not read: %s", gk, r.Unread[gk])
	}
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func unreadKinds(unread map[schema.GroupKind]string) []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk := range unread {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// Plan proves a plan over what lives. The error is about the proof, such as a context that has ended; what was found until then is in the report.
func Plan(ctx context.Context, plan *apply.Plan, live *world.Cluster, o Options) (report *Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("prove the plan: the generator panicked: %v", p)
		}
	}()
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Converter == nil {
		o.Converter = world.NewConverter()
	}
	if live == nil {
		live = &world.Cluster{}
	}
	c := newCourse(plan, live)
	report = &Report{Writes: c.writes(), Stretches: len(c.stretches), Unread: c.unread, After: c.after()}
	l := newLook(c, o, report)
	err = l.walk(ctx, choose(c, o))
	l.judge()
	if err != nil {
		return report, fmt.Errorf("prove the plan: %w", err)
	}
	return report, nil
}
