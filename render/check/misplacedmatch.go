package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// misplacedMatch finds conditions on the path, the method and the like that are written as headers: the proxy then looks for a header of that name.
var misplacedMatch = rule{
	Rule: Rule{
		Code: "MOOR020", Level: Error,
		Title: "a part of the request is written as a header",
		Mend:  "write it beside headers, not below",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		var found []problem
		for i, m := range route.GetMatch() {
			at := fmt.Sprintf("%s.match[%d]", field, i)
			for _, name := range reservedNames(m.GetHeaders()) {
				found = append(found, problem{
					Field:   at + ".headers." + name,
					Message: fmt.Sprintf("looks for a request header named %q, which no client sends: the match never holds", name),
					Mend:    fmt.Sprintf("move it up: %s.%s", at, strings.ToLower(name)),
				})
			}
			for _, name := range reservedNames(m.GetWithoutHeaders()) {
				found = append(found, problem{
					Field:   at + ".withoutHeaders." + name,
					Message: fmt.Sprintf("looks for a request header named %q, which no client sends: the condition always holds", name),
					Mend:    "withoutHeaders is for headers alone; write a route for the requests that are meant, before this one",
				})
			}
		}
		return found
	}),
}

// reservedNames are the keys of a match on headers that Istio's reference says are none.
func reservedNames(headers map[string]*networking.StringMatch) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if slices.Contains([]string{"uri", "scheme", "method", "authority"}, strings.ToLower(name)) {
			names = append(names, name)
		}
	}
	return names
}
