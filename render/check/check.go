package check

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"istio.io/istio/pkg/log"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/schema"
	"github.com/mooring-dev/mooring/render/check/world"
)

// Checker checks sets, and remembers what it found out about objects that have not changed since. It is safe for concurrent use.
type Checker struct {
	kinds     kindIndex
	converter *world.Converter
	// structure is what the rules on single objects said of an object.
	structure world.Kept[[]verdict]
	// rules on single objects.
	rules []rule
	// schemas are the definitions of Istio's kinds, definitions those that sets bring along.
	schemas     *schema.Library
	definitions world.Kept[definition]
	befores     befores
}

// verdict is a problem and the rule that found it. It has no place yet: the same object may be at another line in the next commit.
type verdict struct {
	rule    Rule
	problem problem
}

// New makes a Checker. One serves a whole process.
func New() *Checker {
	quietValidators()
	return &Checker{kinds: istioKinds(), converter: world.NewConverter(), rules: rules(), schemas: schema.New()}
}

// Check looks at a set alone, without a cluster, with a Checker of its own.
func Check(ctx context.Context, set *render.Set) ([]Finding, error) {
	report, err := New().Check(ctx, Request{Set: set})
	if err != nil {
		return nil, err
	}
	return report.Findings, nil
}

// Check looks at a set and says what is wrong. The error is not nil only when the set could not be checked; a set with faults is a success with findings.
func (c *Checker) Check(ctx context.Context, q Request) (*Report, error) {
	if q.Set == nil {
		return nil, errors.New("check objects: no set given")
	}
	report := &Report{}
	faulty := map[render.ID]bool{}
	single, err := c.checkSingly(ctx, q.Set)
	if err != nil {
		return nil, fmt.Errorf("check objects: %w", err)
	}
	for _, f := range single {
		faulty[f.Object] = faulty[f.Object] || f.Level.AtLeast(Error)
	}
	report.Findings = append(report.Findings, single...)
	if err := c.checkMesh(ctx, report, q, faulty); err != nil {
		return nil, err
	}
	translate(report.Findings, q.Set)
	report.Findings = append(report.Findings, renderWarnings(q.Set)...)
	report.Findings = append(report.Findings, suppress(report.Findings, q)...)
	report.tidy()
	return report, nil
}

// checkMesh looks at the set among all that lives. One check at a time does: the mesh in memory once more is what a check needs most of.
func (c *Checker) checkMesh(ctx context.Context, report *Report, q Request, faulty map[render.ID]bool) error {
	before := c.befores.of(q.Cluster)
	select {
	case library <- struct{}{}:
		defer func() { <-library }()
	case <-ctx.Done():
		return fmt.Errorf("check objects: wait for another check to end: %w", context.Cause(ctx))
	}
	lives := before.in(c.converter)
	found, gaps, err := checkWorld(ctx, c.converter.After(q.Set, q.Cluster), lives, q.Set)
	if err != nil {
		return fmt.Errorf("check objects: %w", err)
	}
	for _, f := range found {
		if !faulty[f.Object] { // what follows from a fault that is found already would hide it
			report.Findings = append(report.Findings, f)
		}
	}
	report.Gaps = gaps
	violations, err := q.house().checkSet(ctx, q.Set, lives)
	if err != nil {
		return fmt.Errorf("check objects by the policies: %w", err)
	}
	report.Findings = append(report.Findings, violations...)
	if before != nil && len(report.Findings) > 0 {
		if err := c.markKnown(ctx, report, q, before); err != nil {
			return fmt.Errorf("check what lives in the cluster: %w", err)
		}
	}
	return nil
}

// library holds the token of whoever runs Istio's analyzers and generators, which keep globals of the process.
var library = make(chan struct{}, 1)

// checkWorld asks all that looks at more than one object.
func checkWorld(ctx context.Context, w, before *world.World, set *render.Set) (found []Finding, gaps []Gap, err error) {
	found, gaps, err = analyze(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	more, unknown := runMeshRules(ctx, w, before, set)
	if err := ctx.Err(); err != nil {
		return nil, nil, context.Cause(ctx)
	}
	return append(found, more...), append(gaps, unknown...), nil
}

// quietValidators keeps the library from writing to standard output, where a command may be printing YAML or JSON. All
// that the scope says is in the warnings that validation returns. Setting the level is atomic.
func quietValidators() {
	for _, name := range []string{"validation", log.DefaultScopeName} { // the latter is where doubts about a MeshConfig go
		if s := log.FindScope(name); s != nil {
			s.SetOutputLevel(log.NoneLevel)
		}
	}
}

// checkSingly looks at each object by itself, several at a time. The findings are in the order of the objects.
func (c *Checker) checkSingly(ctx context.Context, set *render.Set) ([]Finding, error) {
	const share = 64 // objects that one worker takes at a time
	found := make([][]Finding, (len(set.Objects)+share-1)/share)
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	i := 0
	for objects := range slices.Chunk(set.Objects, share) {
		into := &found[i]
		i++
		group.Go(func() error {
			for _, o := range objects {
				if err := working.Err(); err != nil {
					return context.Cause(working)
				}
				*into = append(*into, c.checkObject(o)...)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	own, err := c.checkOwn(ctx, set)
	return append(slices.Concat(found...), own...), err
}

// checkObject runs the rules on single objects, or remembers what they said.
func (c *Checker) checkObject(o render.Object) []Finding {
	var found []Finding
	for _, v := range c.verdicts(o) {
		f := v.rule.finding(idOf(o), placeOf(o, v.problem), v.problem)
		f.From, f.Inherent = o.From, true
		found = append(found, f)
	}
	return found
}

func (c *Checker) verdicts(o render.Object) []verdict {
	if o.Content == nil {
		return c.examine(o)
	}
	return c.structure.Of(o.Unstructured(), func() []verdict { return c.examine(o) })
}

func (c *Checker) examine(o render.Object) (found []verdict) {
	defer func() {
		if p := recover(); p != nil {
			found = append(found, verdict{uncheckable.Rule, problem{Message: fmt.Sprintf("the check panicked: %v", p)}})
		}
	}()
	s := newSubject(c.kinds, o)
	s.schemas = c.schemas
	for _, r := range c.rules {
		found = append(found, runRule(r, s)...)
	}
	return found
}

// runRule keeps one rule's panic from hiding what the other rules found.
func runRule(r rule, s *subject) (found []verdict) {
	defer func() {
		if p := recover(); p != nil {
			found = append(found, verdict{uncheckable.Rule, problem{Message: fmt.Sprintf("rule %s panicked: %v", r.Code, p)}})
		}
	}()
	for _, p := range r.check(s) {
		found = append(found, verdict{r.Rule, p})
	}
	return found
}

// idOf names an object, be it none at all.
func idOf(o render.Object) render.ID {
	if o.Content == nil {
		return render.ID{}
	}
	return o.ID()
}

// living is a living object as the rules on single objects see it.
func living(u *unstructured.Unstructured) render.Object {
	return render.Object{Content: render.ContentOf(u)}
}
