package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

// retriesOverTimeout finds retries that the timeout of the route leaves no time for.
var retriesOverTimeout = rule{
	Rule: Rule{
		Code: "MOOR029", Level: Warning,
		Title: "the timeout leaves no time for the retries",
		Mend:  "give the route a timeout of at least perTryTimeout × (attempts + 1), or fewer and shorter tries",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		timeout, try := route.GetTimeout().AsDuration(), route.GetRetries().GetPerTryTimeout().AsDuration()
		attempts := route.GetRetries().GetAttempts()
		if timeout <= 0 || try <= 0 || attempts <= 0 {
			return nil
		}
		if try >= timeout {
			return []problem{{
				Field:   field + ".retries.perTryTimeout",
				Message: fmt.Sprintf("%s is not shorter than the timeout of the route, %s: a slow try uses up all the time and is never retried", try, timeout),
				Mend:    fmt.Sprintf("for %d retries of slow tries, give the route a timeout of %s or make the tries shorter", attempts, try*time.Duration(attempts+1)),
			}}
		}
		if !retriesSlowTries(route.GetRetries()) || try*time.Duration(attempts) < timeout {
			return nil
		}
		begin := (timeout - 1) / try // a retry that begins when the time is up does not begin
		return []problem{{
			Field: field + ".retries.attempts",
			Message: fmt.Sprintf("of %d retries after %s each, %d fit in the timeout of the route, %s: the others never happen when tries are slow",
				attempts, try, begin, timeout),
			Mend: fmt.Sprintf("give the route a timeout of %s, or fewer and shorter tries", try*time.Duration(attempts+1)),
		}}
	}),
}

// slowTryIsTheEnd finds tries that are cut off and not made again, so that the timeout of the route is never reached.
var slowTryIsTheEnd = rule{
	Rule: Rule{
		Code: "MOOR038", Level: Info,
		Title: "a slow try is cut off and not made again",
		Mend:  "add gateway-error or reset to retryOn if the request may be made twice; otherwise leave perTryTimeout out",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		timeout, try := route.GetTimeout().AsDuration(), route.GetRetries().GetPerTryTimeout().AsDuration()
		if try <= 0 || route.GetRetries().GetAttempts() <= 0 || retriesSlowTries(route.GetRetries()) || timeout > 0 && timeout <= try {
			return nil
		}
		limit := "not set"
		if timeout > 0 {
			limit = timeout.String()
		}
		return []problem{{
			Field:   field + ".retries.perTryTimeout",
			Message: fmt.Sprintf("a request without an answer after %s fails, although the timeout of the route is %s: retryOn has nothing that retries a slow try", try, limit),
		}}
	}),
}

// retriesSlowTries says whether a try that took longer than perTryTimeout is tried again: Envoy takes it for a reset of its own making, which only these
// conditions retry. Istio's default is not among them.
func retriesSlowTries(r *networking.HTTPRetry) bool {
	for on := range strings.SplitSeq(r.GetRetryOn(), ",") {
		if slices.Contains([]string{"5xx", "gateway-error", "reset"}, strings.TrimSpace(on)) {
			return true
		}
	}
	return false
}
