package legacy

import "fmt"

func (f *finder) virtualService() {
	f.each([]any{"spec", "http"}, f.httpRoute)
	f.each([]any{"spec", "tcp"}, func(route []any) {
		f.routes(route)
		f.each(below(route, "match"), func(match []any) {
			f.subnets(match, false)
		})
	})
	f.each([]any{"spec", "tls"}, func(route []any) {
		f.routes(route)
		f.each(below(route, "match"), func(match []any) { f.subnets(match, true) })
	})
}

func (f *finder) httpRoute(route []any) {
	f.routes(route)
	f.moved(route, "mirrorPercent", below(route, "mirrorPercentage"), Change{Message: "is retired and still works"}, percent)
	f.moved(below(route, "fault", "delay"), "percent", below(route, "fault", "delay", "percentage"), Change{Message: "is retired and still works"}, percent)
	f.moved(below(route, "fault", "abort"), "percent", below(route, "fault", "abort", "percentage"),
		Change{Message: "is gone: no request is aborted", Broken: true, Unknown: true}, percent)
	f.moved(below(route, "corsPolicy"), "allowOrigin", below(route, "corsPolicy", "allowOrigins"), Change{Message: "is retired and still works"}, exactly)
	f.gone(route, "websocketUpgrade", Change{Message: "is gone: WebSockets are always upgraded", Mend: "leave it out", Unknown: true})
	for _, header := range []struct {
		name string
		to   []any
	}{
		{"appendHeaders", []any{"headers", "request", "add"}},
		{"appendRequestHeaders", []any{"headers", "request", "add"}},
		{"removeRequestHeaders", []any{"headers", "request", "remove"}},
		{"appendResponseHeaders", []any{"headers", "response", "add"}},
		{"removeResponseHeaders", []any{"headers", "response", "remove"}},
	} {
		f.moved(route, header.name, below(route, header.to...), Change{Message: "is gone: the headers stay as they are", Broken: true, Unknown: true}, nil)
	}
	f.each(below(route, "match"), f.httpMatch)
}

// httpMatch finds parts of the request that are written as headers, and a StringMatch that stands beside its field rather than below.
func (f *finder) httpMatch(match []any) {
	for _, part := range []string{"uri", "scheme", "method", "authority"} {
		headers := below(match, "headers")
		if !has(f.at(headers), part) {
			continue
		}
		c := Change{
			Path: pathText(below(headers, part)), Message: "is no header but a part of the request of its own", Broken: true,
			Mend: "write " + pathText(below(match, part)), Exact: f.at(below(match, part)) == nil,
			edits: []edit{{from: below(headers, part), to: below(match, part)}},
		}
		if !c.Exact {
			c.Why = pathText(below(match, part)) + " is there too, and one of the two must be chosen"
		}
		f.found = append(f.found, c)
	}
	for _, how := range []string{"prefix", "exact", "regex"} {
		if has(f.at(match), how) && has(f.at(match), "uri") && f.at(below(match, "uri")) == nil {
			f.found = append(f.found, Change{
				Path: pathText(below(match, how)), Message: "stands beside uri, not below: the match covers every path", Broken: true, Unknown: true,
				Mend: "indent it", Exact: true, edits: []edit{{from: below(match, how), to: below(match, "uri", how)}},
			})
		}
	}
}

// routes finds a destination's weight in the wrong place, and a route that is one mapping where a list is wanted.
func (f *finder) routes(route []any) {
	list := below(route, "route")
	if _, ok := f.at(list).(map[string]any); ok {
		f.found = append(f.found, Change{
			Path: pathText(list), Message: "is a mapping where a list is wanted", Broken: true, Unknown: true,
			Mend: "write it as the item of a list", Exact: true, edits: []edit{{from: list, to: list, list: true}},
		})
		return
	}
	f.each(list, func(item []any) {
		for _, name := range []string{"weight", "weighting"} {
			f.moved(below(item, "destination"), name, below(item, "weight"), Change{Message: "is written beside destination, not in it", Broken: true, Unknown: true}, nil)
		}
	})
}

// subnets finds conditions on addresses.
func (f *finder) subnets(match []any, unknown bool) {
	f.moved(match, "destinationSubnet", below(match, "destinationSubnets"),
		Change{Message: "is gone: the match covers every destination", Broken: true, Unknown: true}, func(v any) any {
			if _, ok := v.(string); !ok {
				return nil
			}
			return []any{v}
		})
	path, ok := f.spelling(match, "sourceSubnet")
	if !ok {
		return
	}
	f.found = append(f.found, Change{
		Path: pathText(path), Broken: true, Unknown: unknown,
		Message: fmt.Sprintf("nobody reads it: the match covers clients of every address, not %v alone", f.at(path)),
		Mend: "choose clients by sourceLabels or sourceNamespace, or allow the addresses with an AuthorizationPolicy " +
			"(rules[].from[].source.ipBlocks)",
		Why: "a route can no longer be chosen by the client's address",
	})
}

func (f *finder) destinationRule() {
	for _, policy := range f.trafficPolicies() {
		lb := below(policy, "loadBalancer")
		if f.at(below(lb, "simple")) == "LEAST_CONN" {
			f.found = append(f.found, Change{
				Path: pathText(below(lb, "simple")), Message: "LEAST_CONN is retired and still works", Mend: "write LEAST_REQUEST", Exact: true,
				edits: []edit{{to: below(lb, "simple"), value: "LEAST_REQUEST"}},
			})
		}
		f.moved(below(lb, "consistentHash"), "minimumRingSize", below(lb, "consistentHash", "ringHash", "minimumRingSize"), Change{Message: "is retired and still works"}, nil)
		f.moved(lb, "warmupDurationSecs", below(lb, "warmup", "duration"), Change{Message: "is retired and still works"}, seconds)
		f.moved(below(policy, "outlierDetection"), "consecutiveErrors", below(policy, "outlierDetection", "consecutiveGatewayErrors"), Change{
			Message: "nobody reads it: no endpoint is ejected for it", Broken: true,
			Mend: "write consecutiveGatewayErrors, which counts 502, 503 and 504 as it did, or consecutive5xxErrors for all errors of the server",
		}, nil)
	}
}

// seconds takes a duration, or a number of seconds.
func seconds(v any) any {
	switch s := v.(type) {
	case string:
		return s
	case int, int64, uint64:
		return fmt.Sprintf("%ds", s)
	}
	return nil
}

func (f *finder) requestAuthentication() {
	f.each([]any{"spec", "jwtRules"}, func(rule []any) {
		f.moved(rule, "jwtHeaders", below(rule, "fromHeaders"), Change{Message: "is gone: the token is looked for elsewhere", Broken: true, Unknown: true}, named)
		f.moved(rule, "jwtParams", below(rule, "fromParams"), Change{Message: "is gone: the token is looked for elsewhere", Broken: true, Unknown: true}, nil)
	})
}
