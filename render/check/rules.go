package check

import (
	"cmp"
	"slices"

	"github.com/mooring-dev/mooring/render"
)

// Rule is what there is to know about a rule without running it.
type Rule struct {
	// Code is stable: a number is never used again for another fault.
	Code  string
	Level Level
	// Title says in a few words what is wrong when the rule finds something.
	Title string
	// Mend is the general advice; a finding often has a better one.
	Mend string
}

// rule is a Rule and the function that finds its faults in one object.
type rule struct {
	Rule
	check func(*subject) []problem
}

// problem is what a rule says about an object. The rule's own words are used where it is silent.
type problem struct {
	Field, Message, Mend string
}

func (r Rule) finding(id render.ID, origin render.Origin, p problem) Finding {
	f := Finding{
		Code: r.Code, Level: r.Level, Object: id, Origin: origin,
		Field: p.Field, Message: p.Message, Mend: p.Mend,
	}
	if f.Message == "" {
		f.Message = r.Title
	}
	if f.Mend == "" {
		f.Mend = r.Mend
	}
	return f
}

// rules in the order of their codes. Each has a file of its own, and archives in testdata that show it.
func rules() []rule {
	return append([]rule{
		uncheckable,
		unknownField,
		wrongType,
		wrongEnum,
		wrongChoice,
		nullField,
		unservedKind,
		retiredKind,
		missingNamespace,
		invalidName,
		invalidLabel,
		invalidAnnotation,
		invalidRevision,
		renderWarning,
		misplacedPolicy,
		refused,
		istioError,
		istioWarning,
	}, append(legacyRules(), writtenRules()...)...)
}

// Rules lists every rule by code.
func Rules() []Rule {
	list := slices.Clone(analyzerRules())
	for _, r := range rules() {
		list = append(list, r.Rule)
	}
	for _, r := range meshRules() {
		list = append(list, r.Rule)
	}
	list = append(list, suppressionRule)
	slices.SortFunc(list, func(a, b Rule) int { return cmp.Compare(a.Code, b.Code) })
	return list
}

// ruleOf finds a rule by its code.
func ruleOf(code string) (Rule, bool) {
	for _, r := range Rules() {
		if r.Code == code {
			return r, true
		}
	}
	return Rule{}, false
}
