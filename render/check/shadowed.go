package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config/validation"

	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// shadowedRoute finds entries and matches that an earlier one of the same VirtualService, or of what it delegates to, leaves no request for. What Istio's
// own validation says of it (IST0130, IST0131) is not repeated.
var shadowedRoute = meshRule{
	Rule: Rule{
		Code: "MOOR051", Level: Warning,
		Title: "an earlier route takes every request",
		Mend:  "move it before the other, narrow the other, or remove it",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, true)
		if t == nil {
			return
		}
		all := append(t.occurrences(), t.cutOff()...)
		slices.SortFunc(all, func(a, b *occurrence) int { return compareSources(a.from, b.from) })
		var entry proxy.Source // the last whose every match is shadowed
		for _, o := range all {
			if o.by == nil || o.reached || saidByIstio(o.from) {
				continue
			}
			this := proxy.Source{Object: o.from.Object, HTTP: o.from.HTTP, Match: -1}
			if this == entry {
				continue
			}
			field := o.from.MatchField()
			if o.wholly(all) {
				entry, field = this, o.from.Field()
			}
			v.report(o.from.Object, problem{
				Field:   field,
				Message: fmt.Sprintf("no request is left for it: %s comes first and takes all that it matches", nameFrom(*o.by, o.from)),
			})
		}
	},
}

// occurrence is one match of an entry in all virtual hosts that it is in.
type occurrence struct {
	from proxy.Source
	// reached says that in some virtual host requests are left for it, and by what covers it in the others.
	reached bool
	by      *proxy.Source
}

// nameFrom names a match as seen from another.
func nameFrom(s, from proxy.Source) string {
	if s.Object == from.Object {
		return s.MatchField()
	}
	return s.MatchField() + " of " + s.Object.ID.String()
}

// occurrences of all matches that some proxy gets.
func (t *traffic) occurrences() []*occurrence {
	known := map[proxy.Source]*occurrence{}
	for _, c := range t.configs {
		for vh, i := range c.Routes {
			r := vh.Routes[i]
			o := known[r.From]
			if o == nil {
				o = &occurrence{from: r.From}
				known[r.From] = o
			}
			by := coveredBy(vh.Routes[:i], r)
			if by == nil {
				o.reached = true
			} else if o.by == nil {
				o.by = by
			}
		}
	}
	out := make([]*occurrence, 0, len(known))
	for _, o := range known {
		out = append(out, o)
	}
	return out
}

// cutOff are the matches that stand behind one that takes every request from every proxy. No proxy gets those: Istio leaves them out.
func (t *traffic) cutOff() []*occurrence {
	last := map[*world.Object]proxy.Route{}
	for _, c := range t.configs {
		for vh, i := range c.Routes {
			r := vh.Routes[i]
			if have, ok := last[r.Root.Object]; r.Match.All() && r.Condition() == "" && (!ok || compareSources(r.Root, have.Root) < 0) {
				last[r.Root.Object] = r
			}
		}
	}
	var out []*occurrence
	for o, by := range last {
		spec, _ := specOf[*networking.VirtualService](o)
		for i, entry := range spec.GetHttp() {
			for k := range max(1, len(entry.GetMatch())) {
				s := proxy.Source{Object: o, HTTP: i, Match: k}
				if len(entry.GetMatch()) == 0 {
					s.Match = -1
				}
				if i > by.Root.HTTP && asksNothing(s) {
					out = append(out, &occurrence{from: s, by: &by.From})
				}
			}
		}
	}
	return out
}

// asksNothing says that a match asks nothing of the proxy.
func asksNothing(s proxy.Source) bool {
	return proxy.Route{From: s, Root: s}.Condition() == ""
}

// coveredBy finds an earlier route of the same VirtualService that takes every request of r from the same proxies.
func coveredBy(earlier []proxy.Route, r proxy.Route) *proxy.Source {
	for _, e := range earlier {
		if e.Root.Object != r.Root.Object {
			continue // for MOOR054 to say
		}
		if e.From.Object == r.From.Object && e.From.HTTP == r.From.HTTP {
			continue // matches of one entry do the same, and so it does not matter
		}
		if condition := e.Condition(); condition != "" && condition != r.Condition() {
			continue
		}
		if e.Match.Covers(r.Match) {
			return &e.From
		}
	}
	return nil
}

func compareSources(a, b proxy.Source) int {
	if a.Object != b.Object {
		return strings.Compare(a.Object.ID.String(), b.Object.ID.String())
	}
	if a.HTTP != b.HTTP {
		return a.HTTP - b.HTTP
	}
	return a.Match - b.Match
}

// wholly says that every match of the entry is shadowed.
func (o *occurrence) wholly(all []*occurrence) bool {
	spec, ok := specOf[*networking.VirtualService](o.from.Object)
	if !ok {
		return false
	}
	shadowed := 0
	for _, other := range all {
		if other.from.Object == o.from.Object && other.from.HTTP == o.from.HTTP && other.by != nil && !other.reached {
			shadowed++
		}
	}
	return shadowed >= len(spec.Http[o.from.HTTP].GetMatch())
}

// saidByIstio says that the validation of the VirtualService finds the match or its entry to be of no use.
func saidByIstio(s proxy.Source) bool {
	c := s.Object.Config()
	spec, ok := specOf[*networking.VirtualService](s.Object)
	if !ok || s.Object.Schema == nil || s.HTTP >= len(spec.Http) {
		return false
	}
	entry, match := numberOf(s.HTTP, spec.Http[s.HTTP].GetName()), ""
	if matches := spec.Http[s.HTTP].GetMatch(); s.Match >= 0 && s.Match < len(matches) {
		match = numberOf(s.Match, matches[s.Match].GetName())
	}
	warning, _ := s.Object.Schema.ValidateConfig(*c)
	return slices.ContainsFunc(split(warning), func(err error) bool {
		var said *validation.AnalysisAwareError
		if !errors.As(err, &said) || len(said.Parameters) == 0 || said.Parameters[0] != entry {
			return false
		}
		if said.Type == "VirtualServiceIneffectiveMatch" && len(said.Parameters) > 1 {
			text, _ := said.Parameters[1].(string)
			return match != "" && strings.HasPrefix(text+" ", match+" ")
		}
		return said.Type == "VirtualServiceUnreachableRule"
	})
}

// numberOf is how the validation names an entry or a match: by its name in quotes, or by its index.
func numberOf(i int, name string) string {
	if name != "" {
		return strconv.Quote(name)
	}
	return "#" + strconv.Itoa(i)
}
