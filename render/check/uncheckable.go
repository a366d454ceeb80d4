package check

// uncheckable is what becomes of a panic: the object is refused, because nobody knows what is wrong with it, and all other
// objects are checked as ever.
var uncheckable = rule{
	Rule: Rule{
		Code: "MOOR001", Level: Error,
		Title: "the object could not be checked",
		Mend:  "remove the object or write it differently, and report this with the object as a bug of Mooring",
	},
	check: func(s *subject) []problem {
		if s.decodeErr == nil {
			return nil
		}
		return []problem{{Field: "spec", Message: "not readable as Istio's " + s.schema.Kind() + ": " + s.decodeErr.Error()}}
	},
}
