package check

import (
	"context"
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render/check/world"
)

// unevenWeights finds weights that look like percentages and are none.
var unevenWeights = rule{
	Rule: Rule{
		Code: "MOOR031", Level: Info,
		Title: "the weights do not add up to 100",
		Mend:  "weights are shares of their sum; where percentages are meant, make them add up to 100",
	},
	check: onHTTPRoutes(func(field string, route *networking.HTTPRoute) []problem {
		weights := weightsOf(route)
		var sum int32
		for _, w := range weights {
			sum += w
		}
		switch {
		case len(weights) == 1 && sum > 0 && sum < 100:
			return []problem{{
				Field:   field + ".route[0].weight",
				Message: fmt.Sprintf("the only destination has weight %d, and gets all requests all the same", sum),
				Mend:    "name the other destination and its weight in the same route, or leave the weight out",
			}}
		case len(weights) < 2 || slices.Contains(weights, sum) || sum <= 10 || slices.Contains([]int32{100, 1000, 10000}, sum):
			return nil // one gets all, or small numbers and thousandths are shares on purpose
		}
		return []problem{{
			Field:   field + ".route",
			Message: fmt.Sprintf("the weights add up to %d, so that %s gets %.1f %% of the requests", sum, target(route.GetRoute()[0].GetDestination()), 100*float64(weights[0])/float64(sum)),
		}}
	}),
}

// finishedCanary finds destinations that a shift of traffic left behind.
//
// Argo Rollouts and Flagger keep a weight of 0 where they wait for the next release, so where they are at work nothing is said.
var finishedCanary = meshRule{
	Rule: Rule{
		Code: "MOOR030", Level: Info,
		Title: "destinations with a weight of 0 get no requests",
		Mend:  "once nobody wants to go back, remove them, and then their subset and their workload",
	},
	check: func(_ context.Context, v *view) {
		for o, vs := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
			if v.shifted(o) {
				continue
			}
			for i, route := range vs.GetHttp() {
				if p, ok := leftBehind(route); ok {
					p.Field = fmt.Sprintf("spec.http[%d]%s", i, p.Field)
					v.report(o, p)
				}
			}
		}
	},
}

// leftBehind says that one destination of several gets everything.
func leftBehind(route *networking.HTTPRoute) (problem, bool) {
	weights := weightsOf(route)
	idle := slices.Index(weights, 0)
	carries := slices.IndexFunc(weights, func(w int32) bool { return w > 0 })
	if idle < 0 || carries < 0 || slices.ContainsFunc(weights[carries+1:], func(w int32) bool { return w > 0 }) {
		return problem{}, false
	}
	to := route.GetRoute()
	return problem{
		Field:   fmt.Sprintf(".route[%d].weight", idle),
		Message: fmt.Sprintf("%s has weight 0: %s gets all requests", target(to[idle].GetDestination()), target(to[carries].GetDestination())),
	}, true
}

func weightsOf(route *networking.HTTPRoute) []int32 {
	var weights []int32
	for _, to := range route.GetRoute() {
		weights = append(weights, to.GetWeight())
	}
	return weights
}

// target names a destination in a message: "catalog (subset v2)".
func target(d *networking.Destination) string {
	if d.GetSubset() == "" {
		return d.GetHost()
	}
	return d.GetHost() + " (subset " + d.GetSubset() + ")"
}

// shifted says whether a controller of progressive delivery may be moving the weights of a VirtualService.
func (v *view) shifted(o *world.Object) bool {
	if o.GetAnnotations()["mooring.dev/drift"] != "" {
		return true
	}
	for _, gk := range []schema.GroupKind{{Group: "argoproj.io", Kind: "Rollout"}, {Group: "flagger.app", Kind: "Canary"}} {
		if slices.ContainsFunc(v.Of(gk.Group, gk.Kind), func(c *world.Object) bool { return c.ID.Namespace == o.ID.Namespace }) {
			return true
		}
	}
	return false
}
