package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
)

func (b *builder) httpMatch(m Match, path []string) *networking.HTTPMatchRequest {
	out := &networking.HTTPMatchRequest{
		Uri: b.uri(m, path), Method: exactly(m.Method), Scheme: exactly(m.Scheme), Authority: exactly(m.Authority),
		Port: m.Port, SourceLabels: m.SourceLabels, SourceNamespace: m.SourceNamespace, IgnoreUriCase: m.IgnoreCase,
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		field := below(path, "headers", name)
		if slices.Contains([]string{"uri", "scheme", "method", "authority"}, name) {
			b.fail(field, "write path, scheme, method or authority beside headers", "Istio ignores a header of this name, and the route would match more than is meant")
		}
		match, absent := b.match(m.Headers[name], field)
		switch {
		case absent && out.WithoutHeaders == nil:
			out.WithoutHeaders = map[string]*networking.StringMatch{name: match}
		case absent:
			out.WithoutHeaders[name] = match
		case out.Headers == nil:
			out.Headers = map[string]*networking.StringMatch{name: match}
		default:
			out.Headers[name] = match
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Query)) {
		if out.QueryParams == nil {
			out.QueryParams = map[string]*networking.StringMatch{}
		}
		out.QueryParams[name] = b.always(m.Query[name], below(path, "query", name))
	}
	if out.String() == "" {
		b.fail(path, "write a condition, or leave match out", "says nothing, and so matches every request")
	}
	return out
}

func exactly(text string) *networking.StringMatch {
	if text == "" {
		return nil
	}
	return &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: text}}
}

func (b *builder) uri(m Match, path []string) *networking.StringMatch {
	var found []*networking.StringMatch
	if m.Path != "" {
		found = append(found, exactly(m.Path))
	}
	if m.PathPrefix != "" {
		found = append(found, &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: m.PathPrefix}})
	}
	if m.PathRegex != "" {
		found = append(found, &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: m.PathRegex}})
	}
	if len(found) == 0 {
		return nil
	}
	if len(found) > 1 {
		b.fail(path, "write one item of match for each", "path, pathPrefix and pathRegex exclude each other")
	}
	return found[0]
}

// percent of requests; nothing written is all of them.
func percent(p *Percent) *networking.Percent {
	if p == nil {
		return &networking.Percent{Value: 100}
	}
	return &networking.Percent{Value: float64(*p)}
}

func redirect(r *Redirect) *networking.HTTPRedirect {
	if r == nil {
		return nil
	}
	out := &networking.HTTPRedirect{Uri: r.Path, Authority: r.Host, Scheme: r.Scheme, RedirectCode: r.Code}
	if r.Port != 0 {
		out.RedirectPort = &networking.HTTPRedirect_Port{Port: r.Port}
	}
	return out
}

func directResponse(r *DirectResponse) *networking.HTTPDirectResponse {
	if r == nil {
		return nil
	}
	out := &networking.HTTPDirectResponse{Status: r.Status}
	if r.Body != "" {
		out.Body = &networking.HTTPBody{Specifier: &networking.HTTPBody_String_{String_: r.Body}}
	}
	return out
}

func (b *builder) retries(r *Retries, path []string) *networking.HTTPRetry {
	if r == nil {
		return nil
	}
	if r.Attempts == 0 {
		// An overlay that switches retries off has what its base says of them still beside it, which Istio would refuse.
		return &networking.HTTPRetry{}
	}
	return &networking.HTTPRetry{
		Attempts: r.Attempts, RetryOn: strings.Join(r.RetryOn, ","), PerTryTimeout: b.duration(r.PerTryTimeout, below(path, "perTryTimeout")),
	}
}

func (b *builder) fault(f *Fault, path []string) *networking.HTTPFaultInjection {
	if f == nil {
		return nil
	}
	out := &networking.HTTPFaultInjection{}
	if d := f.Delay; d != nil {
		out.Delay = &networking.HTTPFaultInjection_Delay{
			Percentage:    percent(d.Percent),
			HttpDelayType: &networking.HTTPFaultInjection_Delay_FixedDelay{FixedDelay: b.duration(d.Duration, below(path, "delay", "duration"))},
		}
	}
	if a := f.Abort; a != nil {
		out.Abort = &networking.HTTPFaultInjection_Abort{Percentage: percent(a.Percent)}
		if a.GRPCStatus != "" {
			out.Abort.ErrorType = &networking.HTTPFaultInjection_Abort_GrpcStatus{GrpcStatus: a.GRPCStatus}
		} else {
			out.Abort.ErrorType = &networking.HTTPFaultInjection_Abort_HttpStatus{HttpStatus: a.Status}
		}
	}
	return out
}

func (b *builder) cors(c *CORS, path []string) *networking.CorsPolicy {
	if c == nil {
		return nil
	}
	out := &networking.CorsPolicy{
		AllowMethods: c.AllowMethods, AllowHeaders: c.AllowHeaders, ExposeHeaders: c.ExposeHeaders, MaxAge: b.duration(c.MaxAge, below(path, "maxAge")),
	}
	for i, o := range c.AllowOrigins {
		origin := below(path, "allowOrigins", index(i))
		match := b.always(o, origin)
		if match.MatchType == nil {
			b.fail(origin, "use exact, prefix or regex", "%s does not say which origin", fmt.Sprint(string(o.Raw)))
		}
		out.AllowOrigins = append(out.AllowOrigins, match)
	}
	if c.AllowCredentials != nil {
		out.AllowCredentials = wrapperspb.Bool(*c.AllowCredentials)
	}
	return out
}

func headers(h *Headers) *networking.Headers {
	if h == nil {
		return nil
	}
	return &networking.Headers{Request: headerChanges(h.Request), Response: headerChanges(h.Response)}
}

func headerChanges(h *HeaderChanges) *networking.Headers_HeaderOperations {
	if h == nil {
		return nil
	}
	return &networking.Headers_HeaderOperations{Set: h.Set, Add: h.Add, Remove: h.Remove}
}
