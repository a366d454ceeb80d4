package check

// wrongEnum finds names that are none of those that the field may hold. They are written in capitals in most of
// Istio's fields.
var wrongEnum = rule{
	Rule: Rule{
		Code: "MOOR004", Level: Error,
		Title: "unknown value",
		Mend:  "write one of the field's values",
	},
	check: func(s *subject) []problem { return s.faults.enum },
}
