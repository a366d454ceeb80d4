package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// resource is where a kind is served in one version.
type resource struct {
	Group, Version, Resource, Kind string
	Namespaced                     bool
	// Status says that status is a subresource: what is written to it otherwise is dropped by the server.
	Status bool
}

// GVR is what clients want to know.
func (r resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GroupKind of the resource.
func (r resource) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// APIVersion as an object writes it.
func (r resource) APIVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// catalog is what the API server said it serves, all of it, and of which groups it could not say. It is never changed once made.
//
// The whole is asked for, in two requests (aggregated discovery), because only a complete answer tells "there is no such
// kind" from "the server of that kind is away". A mapper that asks group by group blurs the two.
type catalog struct {
	kinds  map[schema.GroupKind][]resource // preferred version first
	failed map[string]error                // by group: some version of it could not be discovered
	made   time.Time
}

// discover asks the API server what it serves.
func (a *Applier) discover(ctx context.Context) (*catalog, error) {
	asked := time.Now()
	groups, lists, err := a.discovery.ServerGroupsAndResourcesWithContext(ctx)
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial {
		return nil, fmt.Errorf("discover what the API server serves: %w", err)
	}
	c := &catalog{kinds: make(map[schema.GroupKind][]resource), failed: make(map[string]error), made: asked}
	for gv, err := range failed {
		c.failed[gv.Group] = fmt.Errorf("discover %s: %w", gv, err)
	}
	rank := make(map[schema.GroupVersion]int)
	for _, g := range groups {
		for i, v := range g.Versions {
			rank[schema.GroupVersion{Group: g.Name, Version: v.Version}] = i
		}
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover what the API server serves: %w", err)
		}
		for _, r := range resourcesOf(gv, list.APIResources) {
			c.kinds[r.GroupKind()] = append(c.kinds[r.GroupKind()], r)
		}
	}
	for _, versions := range c.kinds {
		slices.SortStableFunc(versions, func(x, y resource) int {
			return cmp.Compare(rank[schema.GroupVersion{Group: x.Group, Version: x.Version}],
				rank[schema.GroupVersion{Group: y.Group, Version: y.Version}])
		})
	}
	return c, nil
}

func resourcesOf(gv schema.GroupVersion, all []metav1.APIResource) []resource {
	status := make(map[string]bool)
	for _, r := range all {
		if name, sub, ok := strings.Cut(r.Name, "/"); ok && sub == "status" {
			status[name] = true
		}
	}
	var found []resource
	for _, r := range all {
		// What cannot be listed (SubjectAccessReview and its like) is no object that could be kept.
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
			continue
		}
		found = append(found, resource{
			Group: gv.Group, Version: gv.Version, Resource: r.Name, Kind: r.Kind,
			Namespaced: r.Namespaced, Status: status[r.Name],
		})
	}
	return found
}

// kind finds where a kind is served, in the preferred version. Not found is an answer only when all versions of the group could be
// discovered; else it is an error, because absence is never inferred from one.
func (c *catalog) kind(gk schema.GroupKind) (resource, bool, error) {
	if versions := c.kinds[gk]; len(versions) > 0 {
		return versions[0], true, nil
	}
	if err := c.failed[gk.Group]; err != nil {
		return resource{}, false, err
	}
	return resource{}, false, nil
}

// version finds where a kind is served in just this version.
func (c *catalog) version(gvk schema.GroupVersionKind) (resource, bool) {
	for _, r := range c.kinds[gvk.GroupKind()] {
		if r.Version == gvk.Version {
			return r, true
		}
	}
	return resource{}, false
}

// missing explains why a wanted kind is not served.
func (c *catalog) missing(gvk schema.GroupVersionKind) error {
	if err := c.failed[gvk.Group]; err != nil {
		return err
	}
	var served []string
	for _, r := range c.kinds[gvk.GroupKind()] {
		served = append(served, r.APIVersion())
	}
	if len(served) > 0 {
		return fmt.Errorf("%s does not serve %s; write apiVersion: %s", gvk.GroupVersion(), gvk.Kind, strings.Join(served, " or "))
	}
	var groups []string
	for gk := range maps.Keys(c.kinds) {
		if gk.Kind == gvk.Kind {
			groups = append(groups, c.kinds[gk][0].APIVersion())
		}
	}
	slices.Sort(groups)
	if len(groups) > 0 {
		return fmt.Errorf("the cluster serves no %s in %s, but in %s", gvk.Kind, gvk.GroupVersion(), strings.Join(groups, ", "))
	}
	return fmt.Errorf("the cluster serves no %s in %s; apply the CustomResourceDefinition of that kind first, or put it into the same path",
		gvk.Kind, gvk.GroupVersion())
}

// recheck is how long an answer "not served" for a kind that nobody wants any more is believed.
const recheck = 5 * time.Minute

// lookup gives a catalog that knows the wanted versions, and the recorded kinds, as well as the API server does. It asks
// anew only for what it does not know: at rest it costs nothing.
func (a *Applier) lookup(ctx context.Context, wanted []schema.GroupVersionKind, recorded []schema.GroupKind) (*catalog, error) {
	a.mu.Lock()
	c := a.catalog
	a.mu.Unlock()
	if c != nil && c.knows(wanted, recorded) {
		return c, nil
	}
	return a.refresh(ctx)
}

func (c *catalog) knows(wanted []schema.GroupVersionKind, recorded []schema.GroupKind) bool {
	for _, gvk := range wanted {
		if _, ok := c.version(gvk); !ok {
			return false
		}
	}
	for _, gk := range recorded {
		_, ok, err := c.kind(gk)
		if err != nil || !ok && time.Since(c.made) > recheck {
			return false
		}
	}
	return true
}

// refresh replaces the catalog. Nobody waits for anybody: two units that miss something at the same time both ask.
func (a *Applier) refresh(ctx context.Context) (*catalog, error) {
	c, err := a.discover(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.catalog == nil || a.catalog.made.Before(c.made) {
		a.catalog = c
	}
	return c, nil
}

// serves says whether all kinds are served, or may be.
func (c *catalog) serves(kinds []schema.GroupKind) bool {
	return !slices.ContainsFunc(kinds, func(gk schema.GroupKind) bool {
		_, ok, err := c.kind(gk)
		return err == nil && !ok
	})
}

// discoveryLag is how long after a definition was established discovery may not name its kind yet.
const discoveryLag = 2 * time.Second

// lookAgain is for a unit that has no later pass: what an answer of before, or one that lags, does not name would stay for good, with the label of a unit that is gone. A
// definition may have gone and come back since.
func (a *Applier) lookAgain(ctx context.Context, kinds []schema.GroupKind) (c *catalog, err error) {
	unserved := errors.New("not served")
	err = poll(ctx, time.Now().Add(discoveryLag), func() (bool, error) {
		var err error
		switch c, err = a.refresh(ctx); {
		case err != nil:
			return true, err
		case !c.serves(kinds):
			return false, unserved
		}
		return true, nil
	})
	if errors.Is(err, unserved) && ctx.Err() == nil {
		err = nil
	}
	return c, err
}

func (a *Applier) forgetCatalog() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catalog = nil
}
