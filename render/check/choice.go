package check

// wrongChoice finds several fields where only one can be meant, such as exact beside prefix.
var wrongChoice = rule{
	Rule: Rule{
		Code: "MOOR005", Level: Error,
		Title: "more than one of a choice is set",
		Mend:  "keep one of them",
	},
	check: func(s *subject) []problem { return s.faults.choice },
}
