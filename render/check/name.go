package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// invalidName finds names and namespaces that the API server refuses
// (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/). Istio itself does not look at names.
var invalidName = rule{
	Rule: Rule{
		Code: "MOOR010", Level: Error,
		Title: "invalid name",
		Mend:  "use lower case letters, digits and hyphens",
	},
	check: func(s *subject) []problem {
		gk := s.GroupVersionKind().GroupKind()
		meta, ok := s.root()["metadata"].(map[string]any)
		if !ok {
			return []problem{{Field: "metadata", Message: "must be an object with a name"}}
		}
		ps := stringProblems("metadata.name", meta["name"], s.nameFaults(gk))
		if meta["name"] == nil || meta["name"] == "" {
			ps = []problem{{
				Field: "metadata.name", Message: "no name",
				Mend: "write one: an object from Git cannot have a generated name, or it would be another object each time",
			}}
		}
		if ns := meta["namespace"]; ns != nil && ns != "" {
			ps = append(ps, stringProblems("metadata.namespace", ns, validation.IsDNS1123Label)...)
		}
		return ps
	},
}

// nameFaults gives the rule for the names of the kind. Of kinds that are not known here only what holds for all is asked.
func (s *subject) nameFaults(gk schema.GroupKind) func(string) []string {
	switch {
	case gk.Group == "" && (gk.Kind == "Namespace" || gk.Kind == "Service"):
		return validation.IsDNS1123Label
	case s.kinds[gk] != nil, hasSubdomainNames(gk.Group):
		return validation.IsDNS1123Subdomain
	default:
		return content.IsPathSegmentName
	}
}

func hasSubdomainNames(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io",
		"discovery.k8s.io", "gateway.networking.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "mooring.dev":
		return true
	}
	return false
}

// stringProblems applies a rule of the API machinery to a value that should be a string.
func stringProblems(field string, v any, faultsOf func(string) []string) []problem {
	text, ok := v.(string)
	if !ok {
		return []problem{{Field: field, Message: "must be a string, not " + typeName(v), Mend: requote(scalar{ok: isType[string]}, v)}}
	}
	var ps []problem
	for _, fault := range faultsOf(text) {
		p := problem{Field: field, Message: quoteShort(text) + " is not valid: " + plainFault(fault)}
		if near := likeName(text); near != text && len(faultsOf(near)) == 0 {
			p.Mend = "did you mean " + near + "?"
		}
		ps = append(ps, p)
	}
	return ps
}

// plainFault leaves the regular expression out of what the API machinery says.
func plainFault(fault string) string {
	before, after, found := strings.Cut(fault, " (e.g. ")
	if !found {
		return fault
	}
	_, after, _ = strings.Cut(after, "')")
	return before + after
}

// likeName writes the text as a name that is valid everywhere, if it can.
func likeName(text string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		default:
			return '-'
		}
	}, strings.ToLower(text))
	return strings.Trim(name, "-")
}
