package check

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"
)

// idleFault finds faults that are injected into no request.
var idleFault = rule{
	Rule: Rule{
		Code: "MOOR035", Level: Warning,
		Title: "a fault without a percentage hits no request",
		Mend:  "set percentage.value, or remove the fault",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		var found []problem
		for _, f := range faultsOf(route.GetFault()) {
			if !f.says {
				found = append(found, problem{Field: field + ".fault." + f.name, Message: "the " + f.name + " hits no request: it has no percentage"})
			}
		}
		return found
	}),
}

// faultForAll finds faults that are injected into all requests.
var faultForAll = rule{
	Rule: Rule{
		Code: "MOOR036", Level: Warning,
		Title: "the fault hits every request",
		Mend:  "give the route a match, such as a header that only the test sends, or lower the percentage",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		if !everything(route) {
			return nil
		}
		var found []problem
		for _, f := range faultsOf(route.GetFault()) {
			if f.percent >= 100 {
				found = append(found, problem{Field: field + ".fault." + f.name, Message: "every request of this route " + f.effect})
			}
		}
		return found
	}),
}

// injected is one of the faults that a route injects.
type injected struct {
	name, effect string
	percent      float64
	// says is false when no percentage is written, be it 0.
	says bool
}

func faultsOf(fault *networking.HTTPFaultInjection) []injected {
	var all []injected
	if d := fault.GetDelay(); d != nil {
		percent := d.GetPercentage().GetValue()
		//lint:ignore SA1019 Istio still reads the old field
		old := float64(d.GetPercent())
		if d.GetPercentage() == nil {
			percent = old
		}
		all = append(all, injected{"delay", fmt.Sprintf("waits %s", d.GetFixedDelay().AsDuration()), percent, d.GetPercentage() != nil || old > 0})
	}
	if a := fault.GetAbort(); a != nil {
		effect := fmt.Sprintf("is answered with %d", a.GetHttpStatus())
		if status := a.GetGrpcStatus(); status != "" {
			effect = "is answered with " + status
		}
		all = append(all, injected{"abort", effect, a.GetPercentage().GetValue(), a.GetPercentage() != nil})
	}
	return all
}
