package check

// wrongType finds values that are not of their field's type, or out of its range.
var wrongType = rule{
	Rule: Rule{
		Code: "MOOR003", Level: Error,
		Title: "wrong type",
		Mend:  "write the value as the field wants it",
	},
	check: func(s *subject) []problem { return s.faults.mistyped },
}
