package check

// nullField finds fields with nothing after the colon. The API server drops them, so that an empty match: covers
// everything.
var nullField = rule{
	Rule: Rule{
		Code: "MOOR006", Level: Warning,
		Title: "nothing is written here, and the API server drops the field",
		Mend:  "fill it or remove it; check the indentation of what follows",
	},
	check: func(s *subject) []problem { return s.faults.null },
}
