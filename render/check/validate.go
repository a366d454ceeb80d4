package check

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"istio.io/istio/pkg/config/schema/resource"
	"istio.io/istio/pkg/config/validation"
)

// istioError is what istiod's validating webhook would refuse.
var istioError = rule{
	Rule: Rule{
		Code: "IST0106", Level: Error,
		Title: "Istio refuses the object",
		Mend:  "see the kind's page in Istio's reference, https://istio.io/latest/docs/reference/config/",
	},
	check: func(s *subject) []problem {
		_, err := s.validate()
		if err != nil {
			s.compareRefusals()
		}
		return s.istioProblems(err)
	},
}

// istioWarning is what istiod takes and warns about.
var istioWarning = rule{
	Rule: Rule{
		Code: "IST0133", Level: Warning,
		Title: "Istio warns about the object",
		Mend:  "see the kind's page in Istio's reference, https://istio.io/latest/docs/reference/config/",
	},
	check: func(s *subject) []problem {
		warning, _ := s.validate()
		return slices.DeleteFunc(s.istioProblems(warning), func(p problem) bool {
			return strings.Contains(p.Message, "outlier detection consecutive errors is deprecated") // MOOR016: nobody reads it
		})
	},
}

// validate asks Istio, once. An object without a decoded form has faults that come first.
func (s *subject) validate() (warning, err error) {
	if s.config == nil {
		return nil, nil
	}
	if !s.validated {
		s.validated = true // before the call: should it panic, the second rule must not report the same
		s.warning, s.err = s.schema.ValidateConfig(*s.config)
	}
	return s.warning, s.err
}

// istioProblems makes one problem of each single error that Istio packed into one.
func (s *subject) istioProblems(err error) []problem {
	var ps []problem
	for _, text := range errorTexts(err) {
		field := cmp.Or(s.fields[text], "spec") // the definition may know the field
		ps = append(ps, problem{Field: field, Message: text, Mend: "see " + reference(s.schema)})
	}
	return ps
}

// errorTexts are the texts of the single errors in one, each once.
func errorTexts(err error) []string {
	var texts []string
	for _, e := range split(err) {
		if text := strings.TrimSuffix(strings.Join(strings.Fields(e.Error()), " "), "."); text != "" {
			texts = append(texts, text)
		}
	}
	// Some validators repeat an error with the object's name in front.
	var once []string
	for _, text := range texts {
		repeated := func(other string) bool { return strings.HasSuffix(text, ": "+other) }
		if !slices.ContainsFunc(texts, repeated) {
			once = append(once, text)
		}
	}
	return once
}

// reference is the page that describes the kind.
func reference(s resource.Schema) string {
	const root = "https://istio.io/latest/docs/reference/config/"
	switch s.Kind() {
	case "PeerAuthentication":
		return root + "security/peer_authentication/"
	case "RequestAuthentication":
		return root + "security/request_authentication/"
	case "AuthorizationPolicy":
		return root + "security/authorization-policy/"
	case "Telemetry":
		return root + "telemetry/"
	}
	if group, _, _ := strings.Cut(s.Group(), "."); group == "networking" {
		var page strings.Builder
		for i, r := range s.Kind() {
			if i > 0 && unicode.IsUpper(r) {
				page.WriteByte('-')
			}
			page.WriteRune(unicode.ToLower(r))
		}
		return root + "networking/" + page.String() + "/"
	}
	return root
}

// split takes errors apart that hold several, down to those that hold one. An error that puts words around another stays
// whole, because its words say where.
func split(err error) []error {
	var parts []error
	switch e := err.(type) {
	case nil:
		return nil
	case validation.Validation:
		parts = []error{e.Err}
	case interface{ WrappedErrors() []error }:
		parts = e.WrappedErrors()
	case interface{ Unwrap() []error }:
		parts = e.Unwrap()
	default:
		return []error{err}
	}
	var single []error
	for _, p := range parts {
		single = append(single, split(p)...)
	}
	return single
}
