package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// liveObject is an object that exists, at least its metadata, and where it is served.
type liveObject struct {
	metav1.Object
	resource resource
	sketch   bool // only names and versions are known, from the watch
}

// live is everything that carries a unit's label, of every kind that could be looked at.
type live struct {
	objects map[render.ID]liveObject
	// listed are the kinds that were looked at. What is recorded and not listed is not served today.
	listed map[schema.GroupKind]bool
}

// list finds what carries the unit's label, of these kinds. Any error means that nothing is known.
func (a *Applier) list(ctx context.Context, u Unit, kinds []schema.GroupKind, c *catalog) (live, *catalog, error) {
	found, err := a.listOnce(ctx, u, kinds, c)
	if !apierrors.IsNotFound(err) {
		return found, c, err
	}
	// The catalog is out of date: a version or a whole kind went. When a definition was deleted, discovery names its kind a moment longer than
	// it is served; what is still said to be served and answers NotFound after that moment is an error.
	err = poll(ctx, time.Now().Add(min(a.gateTimeout, 5*time.Second)), func() (bool, error) {
		var err error
		if c, err = a.refresh(ctx); err != nil {
			return true, err
		}
		found, err = a.listOnce(ctx, u, kinds, c)
		return !apierrors.IsNotFound(err), err
	})
	return found, c, err
}

func (a *Applier) listOnce(ctx context.Context, u Unit, kinds []schema.GroupKind, c *catalog) (live, error) {
	all := live{objects: make(map[render.ID]liveObject), listed: make(map[schema.GroupKind]bool)}
	var served []resource
	for _, gk := range kinds {
		r, ok, err := c.kind(gk)
		if err != nil {
			return live{}, fmt.Errorf("list %s: %w", gk, err)
		}
		if ok {
			served = append(served, r)
			all.listed[gk] = true
		}
	}
	audit := a.audits.due(u.ID)
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(a.concurrency)
	for _, r := range served {
		if objects, ok := a.watched(u, r); ok {
			mu.Lock()
			maps.Copy(all.objects, objects)
			mu.Unlock()
			continue
		}
		g.Go(func() error {
			var items []*metav1.PartialObjectMetadata
			err := safely(func() (err error) {
				items, err = a.listKind(ctx, u, r)
				return err
			})
			if err != nil {
				return fmt.Errorf("list %s: %w", r.GroupKind(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, item := range items {
				id := render.ID{Group: r.Group, Kind: r.Kind, Namespace: item.Namespace, Name: item.Name}
				all.objects[id] = liveObject{Object: item, resource: r}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return live{}, err
	}
	if audit {
		a.audits.made(u.ID)
	}
	return all, nil
}

const pageSize = 500

func (a *Applier) listKind(ctx context.Context, u Unit, r resource) ([]*metav1.PartialObjectMetadata, error) {
	items, err := a.pages(ctx, u, r, pageSize)
	if apierrors.IsResourceExpired(err) {
		// The list took longer than the server keeps its state for the next page: take all at once.
		return a.pages(ctx, u, r, 0)
	}
	return items, err
}

func (a *Applier) pages(ctx context.Context, u Unit, r resource, size int64) ([]*metav1.PartialObjectMetadata, error) {
	var items []*metav1.PartialObjectMetadata
	opts := metav1.ListOptions{LabelSelector: PartOfLabel + "=" + u.ID, Limit: size}
	for {
		page, err := a.metadata.Resource(r.GVR()).List(ctx, opts)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			items = append(items, &page.Items[i])
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return items, nil
		}
	}
}

// union of kinds, sorted.
func union(a, b []schema.GroupKind) []schema.GroupKind {
	all := slices.Concat(a, b)
	slices.SortFunc(all, compareKinds)
	return slices.Compact(all)
}

func compareKinds(x, y schema.GroupKind) int {
	return strings.Compare(x.String(), y.String())
}

func sameKinds(x, y []schema.GroupKind) bool {
	return slices.Equal(union(x, nil), union(y, nil))
}

// isOurs twice: our label, by which it was found, and our field manager. What is but sketched is as we left it.
func isOurs(meta metav1.Object) bool {
	if m, ok := meta.(liveObject); ok && m.sketch {
		return true
	}
	return appliedEntry(meta) != nil
}

// appliedEntry is what we applied and still own, nil when we never applied the object.
func appliedEntry(meta metav1.Object) *metav1.ManagedFieldsEntry {
	for _, entry := range meta.GetManagedFields() {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return &entry
		}
	}
	return nil
}
