package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/mooring-dev/mooring/render/check/proxy"
)

// sharedHost finds VirtualServices that give a gateway routes for one host that get in each other's way. Those whose matches have nothing in common are merged as
// anybody would expect, and so is one that has the only route for everything else: Istio puts that last. Neither is reported.
var sharedHost = meshRule{
	Rule: Rule{
		Code: "MOOR054", Level: Error,
		Title: "two VirtualServices route the same requests of a gateway",
		Mend:  "put the routes of the host into one VirtualService that delegates to others, or let their matches exclude each other",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, false)
		if t == nil {
			return
		}
		found := map[string]clash{}
		for _, c := range t.configs {
			if !c.Proxy.Gateway {
				continue // IST0109
			}
			for i := range c.Hosts {
				for _, one := range clashes(&c.Hosts[i]) {
					key := one.about.Object.ID.String() + " " + one.other.Object.ID.String()
					if have, ok := found[key]; !ok || one.dead && !have.dead {
						found[key] = one
					}
				}
			}
		}
		for _, key := range slices.SortedFunc(maps.Keys(found), cmp.Compare[string]) {
			one := found[key]
			v.report(one.about.Object, problem{Field: one.about.MatchField(), Message: one.message(), Mend: one.mend(v.rule.Mend)})
			if !one.dead {
				v.findings[len(v.findings)-1].Level = Warning
			}
		}
	},
}

// clash is two routes of different VirtualServices of which one takes what the other is for.
type clash struct {
	host         string
	first, later proxy.Source
	// dead says that the later one never gets a request; else it is only luck that the narrower comes first.
	dead bool
	// about is the one of both that the finding is about, and other its partner.
	about, other proxy.Source
}

// clashes between the VirtualServices of a virtual host.
func clashes(vh *proxy.VirtualHost) []clash {
	var out []clash
	for k, later := range vh.Routes {
		for _, first := range vh.Routes[:k] {
			if first.Root.Object == later.Root.Object {
				continue
			}
			dead := first.Match.Covers(later.Match)
			if !dead && (later.Match.Last() || !later.Match.Covers(first.Match)) {
				continue
			}
			one := clash{host: vh.Host, first: first.Root, later: later.Root, dead: dead, about: later.Root, other: first.Root}
			if one.about.Object.Foreign && !one.other.Object.Foreign {
				one.about, one.other = one.other, one.about // to be mended by whom this commit is from
			}
			out = append(out, one)
		}
	}
	return out
}

func (c clash) message() string {
	other := fmt.Sprintf("%s of %s", c.other.MatchField(), c.other.Object.ID)
	switch {
	case c.dead && c.about == c.later:
		return fmt.Sprintf("no request for %s is left for it: %s comes first and takes them, and which of the two comes first depends on their age", c.host, other)
	case c.dead:
		return fmt.Sprintf("it takes all requests for %s that %s is for, and which of the two comes first depends on their age", c.host, other)
	case c.about == c.later:
		return fmt.Sprintf("it takes more of %s than %s, and which of the two comes first depends on their age", c.host, other)
	default:
		return fmt.Sprintf("%s takes more of %s than it does, and which of the two comes first depends on their age", other, c.host)
	}
}

// mend says where the other one was written: no part of the message, since that is to be the same wherever it is.
func (c clash) mend(general string) string {
	if at := c.other.Object.Origin.String(); at != "" {
		return general + " (the other one: " + at + ")"
	}
	return general
}
