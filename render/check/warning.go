package check

import "github.com/mooring-dev/mooring/render"

// renderWarning passes on what was found strange while an object that only Mooring knows was turned into others: a word that has another
// meaning today, a rule that hides itself. It is found in what was written, which is no longer among the objects, so no object is looked at.
var renderWarning = rule{
	Rule: Rule{
		Code: "MOOR014", Level: Warning,
		Title: "means something else than it seems to",
		Mend:  "mooring render shows what becomes of it, mooring explain what its fields mean",
	},
	check: func(*subject) []problem { return nil },
}

// renderWarnings are the findings that a set brings with it.
func renderWarnings(set *render.Set) []Finding {
	var found []Finding
	for _, w := range set.Warnings {
		f := renderWarning.finding(w.Object, w.Origin, problem{Field: w.Field, Message: w.Text, Mend: w.Hint})
		f.Inherent = true
		found = append(found, f)
	}
	return found
}
