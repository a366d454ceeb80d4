package check

import (
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// searchingRegex finds expressions that are written as if they were searched for, where Envoy wants the whole value to match.
var searchingRegex = rule{
	Rule: Rule{
		Code: "MOOR039", Level: Warning,
		Title: "an expression has to match the whole value",
		Mend:  "say what may come before and after with .*",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		var found []problem
		for i, m := range route.GetMatch() {
			at := fmt.Sprintf("%s.match[%d]", field, i)
			found = append(found, searching(at+".uri.regex", m.GetUri().GetRegex(), true)...)
			for _, name := range slices.Sorted(maps.Keys(m.GetHeaders())) {
				if slices.Contains([]string{"cookie", "user-agent", "referer"}, strings.ToLower(name)) { // the values that are long, and looked for parts
					found = append(found, searching(at+".headers."+name+".regex", m.GetHeaders()[name].GetRegex(), false)...)
				}
			}
		}
		return found
	}),
}

// searching says what is wrong with an expression. A path begins with a slash, which other values need not.
func searching(field, expr string, isPath bool) []problem {
	re, err := regexp.Compile(strings.TrimPrefix(expr, "^"))
	if err != nil || expr == "" {
		return nil // Istio refuses it
	}
	begin, _ := re.LiteralPrefix()
	switch {
	case isPath && begin != "" && !strings.HasPrefix(begin, "/") && begin != "*":
		return []problem{{
			Field:   field,
			Message: fmt.Sprintf("%s has to match the whole path, and no path begins with %q: the match never holds", expr, begin),
			Mend:    "write .*" + expr + " where it may stand anywhere",
		}}
	case strings.HasPrefix(expr, "^") && !strings.HasSuffix(expr, "$") && !openEnded(expr):
		return []problem{{
			Field:   field,
			Message: fmt.Sprintf("%s has to match the whole value, and not the beginning of it alone", expr),
			Mend:    fmt.Sprintf("write %s.* where something may follow, or %s where nothing may", strings.TrimPrefix(expr, "^"), strings.TrimPrefix(expr, "^")),
		}}
	}
	return nil
}

// openEnded says whether any text may follow what an expression matches.
func openEnded(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return true
	}
	return endsOpen(re)
}

// endsOpen says whether the last part of an expression repeats without a limit, or is an end or a choice that may.
func endsOpen(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpEndText, syntax.OpEndLine:
		return true
	case syntax.OpRepeat:
		return re.Max < 0
	case syntax.OpCapture, syntax.OpQuest:
		return endsOpen(re.Sub[0])
	case syntax.OpConcat:
		return len(re.Sub) > 0 && endsOpen(re.Sub[len(re.Sub)-1])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, endsOpen)
	}
	return false
}
