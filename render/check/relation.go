package check

import (
	"fmt"
	"iter"

	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render/check/world"
)

// The API groups of the kinds that the rules on relations read.
const (
	networkingGroup = "networking.istio.io"
	securityGroup   = "security.istio.io"
	appsGroup       = "apps"
)

// specs are the objects of a kind whose spec is known, with the spec in the type of Istio's API.
func specs[T any](v *view, group, kind string) iter.Seq2[*world.Object, T] {
	return func(yield func(*world.Object, T) bool) {
		for _, o := range v.Of(group, kind) {
			if spec, ok := specOf[T](o); ok && !yield(o, spec) {
				return
			}
		}
	}
}

// specOf is the spec of an object in the type of Istio's API; false when it was not read or cannot be.
func specOf[T any](o *world.Object) (spec T, ok bool) {
	if o.MetadataOnly {
		return spec, false
	}
	c := o.Config()
	if c == nil {
		return spec, false
	}
	spec, ok = c.Spec.(T)
	return spec, ok
}

// onHTTPRoutes makes a rule's check of a function that looks at one HTTP route of a VirtualService. The field leads to the route.
func onHTTPRoutes(look func(field string, route *networking.HTTPRoute) []problem) func(*subject) []problem {
	return func(s *subject) []problem {
		if s.config == nil {
			return nil
		}
		vs, ok := s.config.Spec.(*networking.VirtualService)
		if !ok {
			return nil
		}
		var found []problem
		for i, route := range vs.GetHttp() {
			if route != nil {
				found = append(found, look(fmt.Sprintf("spec.http[%d]", i), route)...)
			}
		}
		return found
	}
}

// everything says whether a route has no condition at all: each request that reaches it takes it.
func everything(route *networking.HTTPRoute) bool {
	if len(route.GetMatch()) == 0 {
		return true
	}
	for _, m := range route.GetMatch() {
		if m.GetUri().GetPrefix() != "/" && m.GetUri() != nil {
			continue
		}
		narrow := len(m.GetHeaders())+len(m.GetWithoutHeaders())+len(m.GetQueryParams())+len(m.GetSourceLabels())+len(m.GetGateways()) > 0
		if !narrow && m.GetScheme() == nil && m.GetMethod() == nil && m.GetAuthority() == nil && m.GetPort() == 0 && m.GetSourceNamespace() == "" {
			return true
		}
	}
	return false
}

// text is the string at a path of an object; empty where there is none.
func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// index is the path of an item of a list.
func index(field string, i int) string {
	return fmt.Sprintf("%s[%d]", field, i)
}
