package sync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// claimsLimit bounds the annotation. Who claims more claims all.
const (
	claimsLimit = 200
	claimsAll   = "*"
)

// claim writes on the Mooring which objects its plans were refused for because another Mooring has them, and takes the claims off once a plan is good. An
// agent that starts afresh knows from it what must not be deleted there before this Mooring was looked at. What a commit claimed that was refused stays claimed
// while the next ones are refused as well: none of them is a word about what the last good one has.
func (p *pass) claim(ctx context.Context, refused error) error {
	if p.parent.client == nil {
		return nil
	}
	if !p.unit.claimsKnown {
		p.unit.claims, p.unit.claimsKnown = p.mooring.Annotations[v1alpha1.ClaimsAnnotation], true
	}
	claims := ""
	if refused != nil {
		claims = joined(p.unit.claims, claimsOf(refused))
	}
	if claims == p.unit.claims {
		return nil
	}
	if err := p.parent.claim(ctx, p.mooring, claims); err != nil {
		return err
	}
	p.unit.claims = claims
	return nil
}

func (b parent) claim(ctx context.Context, m *v1alpha1.Mooring, claims string) error {
	// Not the difference of two objects: from one annotation to none at all would be a patch that takes every annotation away.
	var value any
	if claims != "" {
		value = claims
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.ClaimsAnnotation: value}}})
	if err != nil {
		return err
	}
	book := &v1alpha1.Mooring{}
	book.Namespace, book.Name = m.Namespace, m.Name
	if err := b.client.Patch(ctx, book, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("record claims on Mooring %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// claimsOf a refused plan: the objects that another Mooring has.
func claimsOf(refused error) (ids []string) {
	for _, e := range apply.ObjectErrors(refused) {
		if _, foreign := errors.AsType[*apply.ForeignError](e.Err); foreign {
			ids = append(ids, claimOf(e.ID))
		}
	}
	return ids
}

// joined are claims with more of them.
func joined(claims string, more []string) string {
	if claims == claimsAll {
		return claimsAll
	}
	ids := append(strings.Fields(claims), more...)
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > claimsLimit {
		return claimsAll
	}
	return strings.Join(ids, " ")
}

// claimOf is an object as a claim writes it.
func claimOf(id render.ID) string {
	return id.GroupKind().String() + "/" + id.Namespace + "/" + id.Name
}

func claimed(m *v1alpha1.Mooring, id render.ID) bool {
	claims := m.Annotations[v1alpha1.ClaimsAnnotation]
	return claims == claimsAll || slices.Contains(strings.Fields(claims), claimOf(id))
}
