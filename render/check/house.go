package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// policyRule is what is said when a policy of the house cannot be evaluated, or is where it does nothing. What policies find has their own codes.
var policyRule = Rule{
	Code: "MOOR019", Level: Error,
	Title: "a policy of the house could not be evaluated",
	Mend:  "mend the policy",
}

// misplacedPolicy finds policies among the objects: there they are neither evaluated nor known to the API server.
var misplacedPolicy = rule{
	Rule: policyRule,
	check: func(s *subject) []problem {
		if s.GetAPIVersion() != policy.APIVersion || s.GetKind() != policy.Kind {
			return nil
		}
		return []problem{{
			Field: "kind", Message: "a policy among the objects of a commit is not evaluated, and no API server knows its kind",
			Mend: "move the file out of what is rendered and name it in spec.check.policies of the Mooring, or with --policy",
		}}
	},
}

// house are the policies that a request brings, and what they see beside the object.
type house struct {
	policies []*policy.Policy
	mooring  map[string]any
}

// checkSet asks the policies about each object of a set.
func (h house) checkSet(ctx context.Context, set *render.Set, before *world.World) ([]Finding, error) {
	var found []Finding
	if len(h.policies) == 0 {
		return nil, nil
	}
	for _, o := range set.Objects {
		if o.Content == nil {
			continue
		}
		var old map[string]any
		if before != nil {
			if lives := before.Find(o.ID()); lives != nil && !lives.MetadataOnly {
				old = lives.Unstructured().Object
			}
		}
		found = append(found, h.checkObject(ctx, o, old)...)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
	return found, nil
}

func (h house) checkObject(ctx context.Context, o render.Object, old map[string]any) []Finding {
	var found []Finding
	id := o.ID()
	for _, p := range h.policies {
		if !p.Matches(id.Group, id.Kind, id.Namespace, id.Name) {
			continue
		}
		violations, err := p.Check(ctx, o.Unstructured().Object, old, h.mooring)
		if err != nil {
			f := policyRule.finding(id, o.Origin, problem{
				Message: fmt.Sprintf("the policy %s (%s) could not be evaluated: %s", p.Name, p.File, strings.Join(strings.Fields(err.Error()), " ")),
			})
			f.From = o.From
			found = append(found, f)
		}
		for _, v := range violations {
			r := Rule{Code: p.Code, Level: Level(p.Level), Mend: "see the policy " + p.Name + " in " + p.File}
			q := problem{Field: v.Field, Message: v.Message, Mend: v.Mend}
			f := r.finding(id, placeOf(o, q), q)
			f.From = o.From
			found = append(found, f)
		}
	}
	return found
}

// living are the violations that the mesh has already of the objects of a set, as if each were new.
func (h house) living(ctx context.Context, set *render.Set, before *world.World) []Finding {
	var found []Finding
	for _, o := range set.Objects {
		if lives := before.Find(idOf(o)); lives != nil && !lives.MetadataOnly {
			found = append(found, h.checkObject(ctx, living(lives.Unstructured()), nil)...)
		}
	}
	return found
}
