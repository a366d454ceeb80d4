// Package analysis asks Istio's own analyzers about a [world.World], in this process.
//
// It implements the context that the analyzers read and report to (istio.io/istio/pkg/config/analysis, Context) straight over the world: no
// config store, no YAML, no goroutine, and objects in the order of their names, so that two runs over one world say the same in the same
// words. The conversion of objects is remembered by the world's Converter; what a run makes of them lives as long as the run.
//
// # What is asked
//
// All of analyzers.All() but the ValidationAnalyzers, which give each single object to the validators that the rules IST0106 and IST0133 of
// render/check call themselves, with better places. The analyzers are made anew for each run. As in Istio's own reading, what lives in
// kube-system and its like is left out, only the ConfigMaps of istiod are read, and galley.istio.io/analyze-suppress on an object silences codes about it.
//
// # What is not known
//
// Istio's analyzers take what they are given for all there is. Here, much of a mesh may be out of sight: offline there are only the files, and
// in a cluster some kinds may not be listed, or only their metadata was. So each message that follows from an absence is looked at
// again: whether the thing is there after all, in a form that the analyzer does not know, whether it is known not to be, or else becomes an
// [Unknown]. Pods that do not live yet, but will with the commit, are made up from their workloads' templates.
//
// What an analyzer would say about the spec of a Pod, of which metadata alone is read in a cluster (IST0144, IST0147, IST0158), is not said and not
// listed as unknown either: a Pod is not what a commit brings.
//
// # What is mended
//
// Some analyzers choose one of several faults by chance, name the wrong field or change what they are given. Their messages are made definite
// here; each place says which.
//
// A run is bounded: it stops when its context does, and a panic of one analyzer is an Unknown for that analyzer's codes alone. Two analyzers
// keep package variables (authz the first MeshConfig that it sees, multicluster every service registry): they are
// given what does no harm there, and their messages are looked at again. Even so, no two runs may go on at the same time.
package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	istio "istio.io/istio/pkg/config/analysis"
	"istio.io/istio/pkg/config/analysis/analyzers"

	"github.com/mooring-dev/mooring/render/check/world"
)

// Options of a run.
type Options struct {
	// Analyzers to run; nil for all of Istio's.
	Analyzers []istio.Analyzer
}

// Message is what an analyzer says about an object.
type Message struct {
	// Code and Level are Istio's: IST0101, Error.
	Code, Level string
	Text        string
	// Object that the message is about; nil when it is about none.
	Object *world.Object
	// Field of the object, such as spec.http[0].route[0].destination.host; empty for the object as a whole.
	Field string

	// group of messages of which the first counts.
	group string
}

// Unknown is a question that could not be answered.
type Unknown struct {
	Code string
	// About says what was not checked, and Why.
	About, Why string
}

// Result is all that a run said, sorted.
type Result struct {
	Messages []Message
	Unknown  []Unknown
}

// Run asks the analyzers about a world. The error is not nil only when the context ended first.
func Run(ctx context.Context, w *world.World, opts Options) (*Result, error) {
	all := opts.Analyzers
	if all == nil {
		all = Analyzers()
	}
	r := newRun(w, func() bool { return ctx.Err() != nil })
	for _, a := range all {
		r.ask(a)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("analyze objects: %w", context.Cause(ctx))
		}
	}
	r.unasked()
	return r.result(), nil
}

// Analyzers are Istio's, made anew, but those that validate single objects.
func Analyzers() []istio.Analyzer {
	return slices.DeleteFunc(analyzers.All(), func(a istio.Analyzer) bool {
		return strings.HasPrefix(a.Metadata().Name, "schema.ValidationAnalyzer.")
	})
}

// ask one analyzer. What it said before it panicked counts.
func (r *run) ask(a istio.Analyzer) {
	name := a.Metadata().Name
	defer func() {
		r.current = nil
		if p := recover(); p != nil {
			for _, code := range Codes()[name] {
				r.unknown.add(code, "what Istio's analyzer "+name+" looks at", "", fmt.Sprintf("it panicked: %v", p))
			}
		}
	}()
	r.SetAnalyzer(name)
	a.Analyze(r)
}

func (r *run) result() *Result {
	slices.SortFunc(r.said, compareMessages)
	said := slices.CompactFunc(r.said, func(a, b Message) bool {
		return compareMessages(a, b) == 0 || a.group != "" && a.group == b.group && a.Code == b.Code && a.Object == b.Object
	})
	return &Result{Messages: said, Unknown: r.unknown.list()}
}

func compareMessages(a, b Message) int {
	return cmp.Or(
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.name(), b.name()),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Text, b.Text),
	)
}

func (m Message) name() string {
	if m.Object == nil {
		return ""
	}
	return m.Object.ID.String()
}
