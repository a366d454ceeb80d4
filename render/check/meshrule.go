package check

import (
	"context"
	"fmt"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// meshRule finds the faults that no object has by itself, but with others.
type meshRule struct {
	Rule
	check func(ctx context.Context, v *view)
}

// view is what a mesh rule sees, and where it says what it found.
type view struct {
	*world.World
	// before is the mesh as it lives; nil when no cluster was read, and while the living mesh itself is looked at.
	before *world.World
	// traffic is what the proxies are told, for the rules that ask.
	traffic *traffic

	// facts are shared by the rules that look at the same world.
	facts *facts

	rule     Rule
	findings []Finding
	gaps     []Gap
}

// report a fault of an object, at the field of the problem.
func (v *view) report(o *world.Object, p problem) {
	f := v.rule.finding(o.ID, placeOf(o.Object, p), p)
	f.From, f.Foreign = o.From, o.Foreign
	v.findings = append(v.findings, f)
}

// unknown says that something could not be checked.
func (v *view) unknown(about, why string) {
	v.gaps = append(v.gaps, Gap{Code: v.rule.Code, About: about, Why: why})
}

// meshRules in the order of their codes. Each has a file of its own, and a page that shows it.
func meshRules() []meshRule {
	var all []meshRule
	all = append(all, relationRules()...)
	all = append(all, proxyRules()...)
	return all
}

// runMeshRules looks at a world with every rule. A panic of one rule does not hide what the others find.
func runMeshRules(ctx context.Context, after, before *world.World, set *render.Set) (found []Finding, gaps []Gap) {
	shared, known := &traffic{set: set}, &facts{}
	defer shared.close()
	for _, r := range meshRules() {
		v := &view{World: after, before: before, traffic: shared, facts: known, rule: r.Rule}
		runMeshRule(ctx, r, v)
		found = append(found, v.findings...)
		gaps = append(gaps, v.gaps...)
	}
	return found, gaps
}

func runMeshRule(ctx context.Context, r meshRule, v *view) {
	defer func() {
		if p := recover(); p != nil {
			v.unknown("all objects", fmt.Sprintf("the rule panicked: %v", p))
		}
	}()
	r.check(ctx, v)
}
