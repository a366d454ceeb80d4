package check

import (
	"fmt"
	"strings"
)

// unservedKind finds what says it is Istio's and is not known to Istio: a kind that does not exist, or a version that is not
// served. Not all kinds are v1: EnvoyFilter, ProxyConfig and those of extensions.istio.io are not.
var unservedKind = rule{
	Rule: Rule{
		Code: "MOOR007", Level: Error,
		Title: "no such kind is served",
		Mend:  "write a kind and a version that is served",
	},
	check: func(s *subject) []problem {
		gvk := s.GroupVersionKind()
		if r, removed := removal(gvk); removed {
			return []problem{{
				Field: "apiVersion", Message: fmt.Sprintf("%s has removed %s of %s", r.in, gvk.Kind, gvk.GroupVersion()), Mend: r.mend(),
			}}
		}
		if s.schema != nil || !s.kinds.hasGroup(gvk.Group) || replacement(gvk.GroupKind()) != "" {
			return nil
		}
		if known := s.kinds[gvk.GroupKind()]; known != nil {
			return []problem{{
				Field:   "apiVersion",
				Message: fmt.Sprintf("Istio 1.31 serves %s in %s, not in %s", gvk.Kind, strings.Join(versions(known), ", "), gvk.Version),
				Mend:    "write apiVersion: " + known.APIVersion(),
			}}
		}
		p := problem{Field: "kind", Message: fmt.Sprintf("Istio 1.31 has no kind %s in %s", gvk.Kind, gvk.Group)}
		if elsewhere := s.kinds.ofKind(gvk.Kind); elsewhere != nil {
			p.Field, p.Mend = "apiVersion", "write apiVersion: "+elsewhere.APIVersion()
		} else if near := nearest(gvk.Kind, s.kinds.names()); near != "" {
			p.Mend = "did you mean " + near + "?"
		}
		return []problem{p}
	},
}
