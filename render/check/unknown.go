package check

// unknownField finds fields that Istio does not know, and would therefore drop without a word.
var unknownField = rule{
	Rule: Rule{
		Code: "MOOR002", Level: Error,
		Title: "unknown field",
		Mend:  "remove it, or look its name up in Istio's reference",
	},
	check: func(s *subject) []problem { return s.todaysNames(s.faults.unknown) },
}
