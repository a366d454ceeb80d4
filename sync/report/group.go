package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mooring-dev/mooring/apply"
)

// shown is how many of a list a message names in full.
const shown = 3

// told is one thing that went wrong.
type told struct {
	op    string // what was tried with it: apply, delete; may be empty
	whose string
	why   string
	// plain is why, without the names that are in the server's words about a single object.
	plain string
}

// group is a number of things that went wrong for one reason.
type group struct {
	op, why string
	whose   []string
}

// grouped puts together what has the same reason, in the order of the first of each: thirty objects that one webhook denies are one fault to whoever
// reads it.
func grouped(all []told) []group {
	var groups []group
	at := make(map[[2]string]int)
	for _, one := range all {
		key := [2]string{one.op, one.plain}
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key] = i
			groups = append(groups, group{op: one.op, why: one.why})
		} else {
			groups[i].why = one.plain // no longer the words about one of them
		}
		groups[i].whose = append(groups[i].whose, one.whose)
	}
	return groups
}

// names are the first few, and the number of the rest.
func (g group) names() string {
	s := strings.Join(g.whose[:min(shown, len(g.whose))], ", ")
	if more := len(g.whose) - shown; more > 0 {
		s += fmt.Sprintf(" and %d more objects", more)
	}
	return s
}

// faults as sentences: those of objects that have the same cause are one.
func faults(errs []error) []string {
	var all []told
	for _, err := range errs {
		e, ok := err.(*apply.ObjectError) // one that is wrapped has words of its own around it
		if !ok {
			all = append(all, told{why: err.Error(), plain: err.Error()})
			continue
		}
		one := told{op: e.Op + " ", whose: e.ID.String(), why: e.Err.Error()}
		if e.Origin.File != "" {
			one.whose += " (" + e.Origin.String() + ")"
		}
		one.plain = one.why
		for _, name := range []string{e.ID.Name, e.ID.Namespace} {
			if name != "" {
				one.plain = strings.ReplaceAll(one.plain, strconv.Quote(name), `"…"`)
			}
		}
		all = append(all, one)
	}
	var sentences []string
	for _, g := range grouped(all) {
		if g.whose[0] == "" {
			sentences = append(sentences, g.why)
		} else {
			sentences = append(sentences, g.op+g.names()+": "+g.why)
		}
	}
	return sentences
}
