package alarm

import (
	"slices"
	"strings"
)

// cause of a fault, as far as words can tell: the event, the reason and the message without what differs between Moorings and objects
// that one thing has broken. Faults of one cause are told together.
type cause string

func (f fault) cause() cause {
	return cause(string(f.event) + " " + f.reason + " " + skeleton(f.message))
}

// over is the cause of a message that such a fault is over.
func (c cause) over() cause { return "over " + c }

// maxSkeleton is how much of a message counts: what comes after it is detail.
const maxSkeleton = 300

// skeleton is a message without what names something (a word with a slash, an @ or a digit, and what stands in quotes) and
// without the words that tell many from one.
func skeleton(message string) string {
	var b strings.Builder
	for i, part := range strings.Split(message, `"`) {
		if i%2 == 0 {
			b.WriteString(part)
		}
	}
	var words []string
	for w := range strings.FieldsSeq(b.String()) {
		named := strings.ContainsAny(w, "/@0123456789")
		w = strings.Trim(w, ".,;:()")
		if w != "" && !named && !slices.Contains([]string{"and", "more", "object", "objects", "faults", "fields"}, w) {
			words = append(words, w)
		}
	}
	s := strings.Join(words, " ")
	return s[:min(len(s), maxSkeleton)]
}
