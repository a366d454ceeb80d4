package sync

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// What KEP-3659 wants on the parent of an ApplySet.
const (
	applySetID    = "applyset.kubernetes.io/id"
	applySetTool  = "applyset.kubernetes.io/tooling"
	applySetKinds = "applyset.kubernetes.io/contains-group-kinds"
)

// parent keeps the ApplySet's book on the Mooring itself: which kinds it may have objects of. The book is written
// before the first object of a new kind, so that whatever a crash leaves behind is found again.
type parent struct {
	client client.Client // nil in a preview, which writes nothing
	tool   string        // name/version, as the KEP wants it
}

// unit is the ApplySet of a Mooring.
func (b parent) unit(m *v1alpha1.Mooring, u *unit) apply.Unit {
	if !u.kindsKnown {
		u.kinds, u.kindsKnown = parseKinds(m.Annotations[applySetKinds]), true
	}
	return apply.Unit{
		ID:    ID(m),
		Name:  m.Namespace + "/" + m.Name,
		Kinds: u.kinds,
		Record: func(ctx context.Context, kinds []schema.GroupKind) error {
			if err := b.record(ctx, m, kinds); err != nil {
				return err
			}
			u.kinds = kinds
			return nil
		},
	}
}

// ID of the ApplySet of a Mooring.
func ID(m *v1alpha1.Mooring) string {
	return apply.ApplySetID(m.Name, m.Namespace, v1alpha1.Kind, v1alpha1.GroupVersion.Group)
}

func (b parent) record(ctx context.Context, m *v1alpha1.Mooring, kinds []schema.GroupKind) error {
	book := &v1alpha1.Mooring{}
	book.Namespace, book.Name = m.Namespace, m.Name
	changed := book.DeepCopy()
	changed.Labels = map[string]string{applySetID: ID(m)}
	changed.Annotations = map[string]string{applySetTool: b.tool, applySetKinds: formatKinds(kinds)}
	if err := b.client.Patch(ctx, changed, client.MergeFrom(book)); err != nil {
		return fmt.Errorf("record kinds on Mooring %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

func parseKinds(s string) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			kinds = append(kinds, schema.ParseGroupKind(part))
		}
	}
	return kinds
}

func formatKinds(kinds []schema.GroupKind) string {
	names := make([]string, 0, len(kinds))
	for _, k := range slices.SortedFunc(slices.Values(kinds), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }) {
		names = append(names, k.String())
	}
	return strings.Join(names, ",")
}
