package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// maxBuilds is how many builds may run at once.
const maxBuilds = 8

// builds is the right to run kustomize. It is a variable of the package, with schemas the only one that changes, because what it guards is one: the
// schema in kyaml's package openapi belongs to the process, so a lock in a Renderer would guard nothing as soon as there are two.
//
// That schema is the only thing in kustomize that builds share (its other package variables are written once, or under a
// lock). A build whose kustomizations have no openapi field only reads it, once it is loaded; such builds hold one
// share each and run side by side. A build that has such a field replaces the schema for all, so it holds all the shares, and
// puts the schema back before it lets go. kustomize itself would leave it to the next build: see
// https://github.com/kubernetes-sigs/kustomize/issues/4824.
//
// A share is held until kustomize really returns, also when nobody waits for it any more. Whoever needs all the shares waits for that,
// and those who come later wait for him; each only as long as his context allows.
var builds = semaphore.NewWeighted(maxBuilds)

// kustomize builds the folder root.
func kustomize(ctx context.Context, t *tree, root string) ([]Object, error) {
	v := newVetter(t, root)
	if err := v.walk(); err != nil {
		return nil, err
	}
	v.noteHollow()
	objects, err := v.build(ctx)
	if err != nil {
		return nil, err
	}
	objects, err = inOrder(v.traced(objects))
	return followed(objects), err
}

// noteHollow finds what was read for objects and holds none.
func (v *vetter) noteHollow() {
	for name, sources := range v.sources {
		if len(sources) == 0 {
			v.tree.hollow = append(v.tree.hollow, name)
		}
	}
	for dir, k := range v.read {
		if dir != v.root && k != nil && k.Kind != types.ComponentKind && k.nothing() {
			v.tree.hollow = append(v.tree.hollow, k.file)
		}
	}
}

// nothing is true for a kustomization that names nothing that objects could come from.
func (k *kustomization) nothing() bool {
	if slices.ContainsFunc(k.found, func(f found) bool { return f.field == "bases" }) {
		return false // where kustomize took resources from once
	}
	return len(k.Resources)+len(k.Components)+len(k.Generators)+len(k.Crds)+
		len(k.ConfigMapGenerator)+len(k.SecretGenerator)+len(k.HelmCharts) == 0
}

// built is what comes out of a build.
type built struct {
	objects []Object
	err     error
}

// build runs kustomize in a goroutine of its own, because it cannot be interrupted: when the time is over, it is left alone, and
// ends with the next file that it wants to read.
func (v *vetter) build(ctx context.Context) ([]Object, error) {
	shares := int64(1)
	if v.ownRules {
		shares = maxBuilds
	}
	if err := builds.Acquire(ctx, shares); err != nil {
		return nil, fmt.Errorf("wait for other builds: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, v.tree.limits.Timeout,
		fault("", 0, "split the path in two", "the build takes longer than %s", v.tree.limits.Timeout))
	v.tree.stop = func() error { return context.Cause(ctx) }
	result := make(chan built, 1)
	go func() {
		defer builds.Release(shares)
		defer cancel()
		objects, err := v.divided()
		if errors.Is(err, errUndivided) {
			objects, err = v.run()
		}
		result <- built{objects, err}
	}()
	select {
	case r := <-result:
		return r.objects, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-result: // it ended at the same moment
		return r.objects, r.err
	default:
		return nil, context.Cause(ctx)
	}
}

// run is one build by kustomize, or two where one would not do: see notesShow.
func (v *vetter) run() (_ []Object, err error) {
	defer caught(&err, v.read[v.root].file)
	guardLog()
	if v.ownRules {
		defer openapi.ResetOpenAPI()
	} else if err := loadSchema(); err != nil {
		return nil, err
	}
	if v.notesCost() {
		m, err := v.krusty(false)
		return v.ended(m, nil, err)
	}
	noted, err := v.krusty(true)
	if v.tree.broken == nil && v.notesShow() {
		var m resmap.ResMap
		if m, err = v.krusty(false); err == nil {
			return v.results(m, noted)
		}
	}
	return v.ended(noted, noted, err)
}

// notesCost says whether notes would take longer than the build: kustomize adds to the notes of every object with each transformer, and reads and
// writes all of them each time; and where notes might show, the build is done twice. Where objects come from is then found by their names.
func (v *vetter) notesCost() bool {
	const tooMuch, tooMany = 10_000, 500
	sum := 0
	for dir, k := range v.read {
		transformers := len(k.Patches) + len(old(&k.Kustomization).json6902Patches) + len(k.Images) + len(k.Replicas) + len(k.Labels) + len(k.Transformers)
		sum += v.costs[dir].objects * transformers * transformers
	}
	return sum > tooMuch || v.costs[v.root].objects >= tooMany && v.notesShow()
}

// ended makes what kustomize gave objects, or the error that a user is told.
func (v *vetter) ended(m, noted resmap.ResMap, err error) ([]Object, error) {
	switch {
	case v.tree.broken != nil:
		return nil, v.tree.broken
	case err != nil:
		return nil, explain(v, err)
	default:
		return v.results(m, noted)
	}
}

// krusty runs kustomize. With notes, every object has an annotation with where it comes from.
func (v *vetter) krusty(notes bool) (resmap.ResMap, error) {
	if v.ownRules {
		openapi.ResetOpenAPI()
		if err := addSchema(); err != nil {
			return nil, err
		}
	}
	v.notes = notes
	v.tree.cache.count(func(c *counts) { c.Undivided++ })
	// The default is no plugins, no files from outside of the folders of kustomizations, and no sorting, which takes kustomize a fifth of
	// its time and which we do ourselves.
	return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(&kustFS{tree: v.tree, vetter: v}, outside(v.root))
}
