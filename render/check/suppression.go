package check

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// SuppressAnnotation accepts findings about the object that carries it, each with its reason: "MOOR012: the old clients go in May; IST0102: …".
const SuppressAnnotation = "mooring.dev/suppress"

// suppressionRule finds annotations that accept nothing.
var suppressionRule = Rule{
	Code: "MOOR018", Level: Warning,
	Title: "suppresses nothing",
	Mend:  `write the code and the reason, as in mooring.dev/suppress: "MOOR012: the old clients go in May"; several are separated by semicolons`,
}

// code is what a rule's code looks like, Istio's, Mooring's or one of a policy of the house.
var code = regexp.MustCompile(`^[A-Z][A-Z0-9_-]*[0-9]+$`)

// acceptance is one entry of the annotation.
type acceptance struct {
	code, reason string
	problem      string
}

// acceptances reads the annotation of an object. An entry without a reason accepts nothing: whoever reads it in a year must know why.
func acceptances(annotation string) []acceptance {
	var all []acceptance
	for entry := range strings.SplitSeq(annotation, ";") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, reason, _ := strings.Cut(entry, ":")
		a := acceptance{code: strings.TrimSpace(name), reason: strings.TrimSpace(reason)}
		switch {
		case !code.MatchString(a.code):
			// A reason may well hold a semicolon: what does not begin with a code belongs to the entry before.
			if n := len(all); n > 0 && all[n-1].problem == "" {
				all[n-1].reason += "; " + entry
				continue
			}
			a.problem = fmt.Sprintf("%q is no code of a rule", a.code)
		case a.reason == "":
			a.problem = fmt.Sprintf("%s is suppressed without a reason, so it is not suppressed", a.code)
		}
		all = append(all, a)
	}
	return all
}

// suppress marks the findings that somebody accepted, and returns findings about annotations that accept nothing.
func suppress(found []Finding, q Request) []Finding {
	accepted, more := annotated(q.Set)
	for i, f := range found {
		if s := q.suppress(f); s != nil {
			found[i].Suppressed = s
			continue
		}
		for _, id := range []render.ID{f.Object, f.From} {
			if reason := accepted[id][f.Code]; reason != "" {
				found[i].Suppressed = &Suppressed{By: SuppressAnnotation, Reason: reason}
			}
		}
	}
	return more
}

// annotated lists, by object and code, the reasons that the set's annotations give.
func annotated(set *render.Set) (map[render.ID]map[string]string, []Finding) {
	accepted := map[render.ID]map[string]string{}
	var found []Finding
	for _, o := range set.Objects {
		if o.Content == nil {
			continue
		}
		annotation := o.GetAnnotations()[SuppressAnnotation]
		for _, a := range acceptances(annotation) {
			if a.problem != "" {
				p := problem{Field: "metadata.annotations[" + SuppressAnnotation + "]", Message: a.problem}
				f := suppressionRule.finding(o.ID(), placeOf(o, p), p)
				f.From, f.Inherent = o.From, true
				found = append(found, f)
				continue
			}
			if accepted[o.ID()] == nil {
				accepted[o.ID()] = map[string]string{}
			}
			accepted[o.ID()][a.code] = a.reason
		}
	}
	return accepted, found
}
