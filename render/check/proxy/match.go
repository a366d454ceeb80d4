package proxy

import (
	"fmt"
	"regexp"
	"strings"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	istioroute "istio.io/istio/pilot/pkg/networking/core/route"
)

// Match is which requests a route takes.
type Match struct {
	envoy *route.RouteMatch
}

// All says that every request is taken.
func (m Match) All() bool {
	return m.anyPath() && len(m.envoy.GetHeaders()) == 0 && len(m.envoy.GetQueryParameters()) == 0 && len(m.envoy.GetDynamicMetadata()) == 0
}

// Last says that a gateway puts the route behind all others of its virtual host, whichever VirtualService is older.
func (m Match) Last() bool {
	return istioroute.IsCatchAllRoute(&route.Route{Match: m.envoy})
}

// Covers says that m takes every request that other takes, for certain: false may also mean that it is not known.
func (m Match) Covers(other Match) bool {
	return m.coversPath(other) &&
		implied(m.envoy.GetHeaders(), other.envoy.GetHeaders(), impliesHeader) &&
		implied(m.envoy.GetQueryParameters(), other.envoy.GetQueryParameters(), impliesParameter) &&
		implied(m.envoy.GetDynamicMetadata(), other.envoy.GetDynamicMetadata(), func(a, b *matcher.MetadataMatcher) bool { return proto.Equal(a, b) })
}

// implied says that each condition follows from one of those that are given.
func implied[T any](conditions, given []T, follows func(condition, given T) bool) bool {
	for _, c := range conditions {
		found := false
		for _, g := range given {
			found = found || follows(c, g)
		}
		if !found {
			return false
		}
	}
	return true
}

// anyPath: a path starts with a slash.
func (m Match) anyPath() bool {
	prefix, ok := m.prefix()
	return ok && (prefix == "" || prefix == "/")
}

// prefix that the path must have and that is all that is asked of it.
func (m Match) prefix() (string, bool) {
	switch p := m.envoy.GetPathSpecifier().(type) {
	case *route.RouteMatch_Prefix:
		return p.Prefix, true
	case *route.RouteMatch_SafeRegex:
		literal, ok := strings.CutSuffix(p.SafeRegex.GetRegex(), ".*")
		if ok && regexp.QuoteMeta(literal) == literal {
			return literal, true
		}
	}
	return "", false
}

// folds says that the path is compared without regard to case. A regular expression never is.
func (m Match) folds() bool {
	_, isRegex := m.envoy.GetPathSpecifier().(*route.RouteMatch_SafeRegex)
	return !isRegex && m.envoy.GetCaseSensitive() != nil && !m.envoy.GetCaseSensitive().GetValue()
}

func (m Match) coversPath(other Match) bool {
	if m.anyPath() {
		return true
	}
	if other.folds() && !m.folds() {
		return false
	}
	fold := func(s string) string {
		if m.folds() {
			return strings.ToLower(s)
		}
		return s
	}
	if prefix, ok := m.prefix(); ok {
		return strings.HasPrefix(fold(other.start()), fold(prefix))
	}
	switch mine := m.envoy.GetPathSpecifier().(type) {
	case *route.RouteMatch_Path:
		exact, ok := other.envoy.GetPathSpecifier().(*route.RouteMatch_Path)
		return ok && fold(exact.Path) == fold(mine.Path)
	case *route.RouteMatch_SafeRegex:
		return coversRegex(mine.SafeRegex.GetRegex(), other)
	}
	return false
}

func coversRegex(mine string, other Match) bool {
	switch theirs := other.envoy.GetPathSpecifier().(type) {
	case *route.RouteMatch_SafeRegex:
		return theirs.SafeRegex.GetRegex() == mine
	case *route.RouteMatch_Path:
		r, err := regexp.Compile("^(?:" + mine + ")$")
		return err == nil && r.MatchString(theirs.Path)
	}
	return false
}

// start is what every path that is taken starts with.
func (m Match) start() string {
	switch p := m.envoy.GetPathSpecifier().(type) {
	case *route.RouteMatch_Prefix:
		return p.Prefix
	case *route.RouteMatch_Path:
		return p.Path
	case *route.RouteMatch_PathSeparatedPrefix:
		return p.PathSeparatedPrefix
	case *route.RouteMatch_SafeRegex:
		if r, err := regexp.Compile(p.SafeRegex.GetRegex()); err == nil {
			literal, _ := r.LiteralPrefix()
			return literal
		}
	}
	return ""
}

// impliesHeader says that a request for which given holds has what the condition asks.
func impliesHeader(condition, given *route.HeaderMatcher) bool {
	if !strings.EqualFold(condition.GetName(), given.GetName()) {
		return false
	}
	if proto.Equal(condition, given) {
		return true
	}
	if condition.GetInvertMatch() || given.GetInvertMatch() {
		return false
	}
	if condition.GetPresentMatch() {
		return given.GetPresentMatch() || given.GetStringMatch() != nil && !given.GetTreatMissingHeaderAsEmpty()
	}
	return impliesString(condition.GetStringMatch(), given.GetStringMatch())
}

func impliesParameter(condition, given *route.QueryParameterMatcher) bool {
	if condition.GetName() != given.GetName() {
		return false
	}
	if condition.GetPresentMatch() {
		return given.GetPresentMatch() || given.GetStringMatch() != nil
	}
	return impliesString(condition.GetStringMatch(), given.GetStringMatch())
}

// impliesString compares what is asked of a value.
func impliesString(condition, given *matcher.StringMatcher) bool {
	if condition == nil || given == nil {
		return false
	}
	if proto.Equal(condition, given) {
		return true
	}
	if condition.GetIgnoreCase() || given.GetIgnoreCase() {
		return false
	}
	if prefix := condition.GetPrefix(); prefix != "" {
		return strings.HasPrefix(given.GetExact(), prefix) || strings.HasPrefix(given.GetPrefix(), prefix)
	}
	if r := condition.GetSafeRegex().GetRegex(); r != "" && given.GetExact() != "" {
		compiled, err := regexp.Compile("^(?:" + r + ")$")
		return err == nil && compiled.MatchString(given.GetExact())
	}
	return false
}

// Condition is what an entry asks of the proxy, not of the request: gateways, labels and namespace of the source, and the port. Empty when it asks nothing.
func (r Route) Condition() string {
	var all []string
	for _, s := range []Source{r.Root, r.From} {
		if m := s.match(); m != nil && (len(m.Gateways) > 0 || len(m.SourceLabels) > 0 || m.SourceNamespace != "" || m.Port != 0) {
			all = append(all, fmt.Sprint(m.Gateways, m.SourceLabels, m.SourceNamespace, m.Port))
		}
	}
	return strings.Join(all, " ")
}
