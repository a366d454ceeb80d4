package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// Level says how bad a finding is.
type Level string

// The levels, from the mildest to the worst.
const (
	// Info is worth knowing.
	Info Level = "Info"
	// Warning is probably not what was meant; the cluster takes it.
	Warning Level = "Warning"
	// Error is refused, dropped or misread by the cluster. It blocks the commit.
	Error Level = "Error"
)

// AtLeast says whether l is as bad as other, or worse. An unknown level is worse than all known ones, so that it blocks
// rather than slips through.
func (l Level) AtLeast(other Level) bool {
	return l.rank() >= other.rank()
}

func (l Level) rank() int {
	if i := slices.Index([]Level{Info, Warning, Error}, l); i >= 0 {
		return i
	}
	return len(Error)
}

// Finding is one fault in one object.
type Finding struct {
	// Code names the rule, for ever: MOOR002, IST0106.
	Code  string
	Level Level
	// Object that has the fault.
	Object render.ID
	// Origin is where in the repository the field was written that has the fault, as far as that is known, or else where the object begins.
	Origin render.Origin
	// From is what the object was expanded from, such as an AppConfiguration; the zero ID when it was written as it is.
	From render.ID
	// Field is the path of the fault in the object, as in spec.http[0].route[0].weight; empty for the object as a whole.
	Field string
	// Message says what is wrong, Mend what to do about it.
	Message string
	Mend    string
	// Fix is what takes the place of an object whose kind is gone; nil where there is none.
	Fix *Fix
	// Inherent says that the object has the fault by itself: whatever becomes of the rest of the mesh, only another commit mends it.
	Inherent bool
	// Known says that the mesh has this fault already: the commit does not make it worse.
	Known bool
	// Foreign says that the object is not among those of the commit but lives in the cluster.
	Foreign bool
	// Suppressed says that somebody accepted the finding; nil when nobody did.
	Suppressed *Suppressed
}

// String writes one line, in the shape of a compiler's message, so that editors find the place:
//
//	overlays/prod/route.yaml:12: error MOOR002 VirtualService/shop/web: spec.http[0].weighting: unknown field; did you mean weight?
func (f Finding) String() string {
	var b strings.Builder
	if o := f.Origin.String(); o != "" {
		b.WriteString(o + ": ")
	}
	b.WriteString(strings.ToLower(string(f.Level)) + " " + f.Code + " " + f.Subject() + ": " + f.Text())
	return strings.Join(strings.Fields(b.String()), " ")
}

// Subject names the object, and what it was made of where nobody wrote it: "VirtualService/apps/reviews (from AppConfiguration/apps/reviews)".
func (f Finding) Subject() string {
	if f.From == (render.ID{}) {
		return f.Object.String()
	}
	return f.Object.String() + " (from " + f.From.String() + ")"
}

// Text is the fault and its mend alone, without code, object and place: "spec.http[0].weighting: unknown field; did you mean weight?"
func (f Finding) Text() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Mend != "" {
		text += "; " + f.Mend
	}
	return text
}

// Path is the field step by step: spec.http[0].name is spec, http, 0 and name.
func (f Finding) Path() []string {
	return steps(f.Field)
}

// compareFindings orders by place first, so that a reader walks through a file once.
func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.Origin.File, b.Origin.File),
		cmp.Compare(a.Origin.Line, b.Origin.Line),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Object.String(), b.Object.String()),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Message, b.Message),
	)
}

func compareGaps(a, b Gap) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.About, b.About), cmp.Compare(a.Why, b.Why))
}

// String writes "not checked: IST0101: the host reviews: no cluster was asked".
func (g Gap) String() string {
	return "not checked: " + g.Code + ": " + g.About + ": " + g.Why
}
