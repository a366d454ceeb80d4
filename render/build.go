package render

import (
	"context"
	"fmt"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// maxBuilds is how many builds may run at once.
const maxBuilds = 8

// builds is the right to run kustomize. It is a variable of the package, the only one that changes, because what it guards is one: the
// schema in kyaml's package openapi belongs to the process, so a lock in a Renderer would guard nothing as soon as there are two.
//
// That schema is the only thing in kustomize that builds share (its other package variables are written once, or under a
// lock). A build whose kustomizations have no openapi field only reads it, once it is loaded; such builds hold one
// share each and run side by side. A build that has such a field replaces the schema for all, so it holds all the shares, and
// puts the schema back before it lets go. kustomize itself would leave it to the next build: see
// https://github.com/kubernetes-sigs/kustomize/issues/4824.
//
// A share is held until kustomize really returns, also when nobody waits for it any more.
var builds = semaphore.NewWeighted(maxBuilds)

// kustomize builds the folder root.
func kustomize(ctx context.Context, t *tree, root string) ([]Object, error) {
	v := newVetter(t, root)
	if err := v.walk(); err != nil {
		return nil, err
	}
	return v.build(ctx)
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
		objects, err := v.run()
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

// run is one build by kustomize.
func (v *vetter) run() (objects []Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			objects, err = nil, &Error{
				File: v.read[v.root].file,
				Err:  &told{"kustomize failed in a way that it should not", &Panic{Value: p, Stack: debug.Stack()}},
				Hint: "see whether kustomize build does too, and report it to the kustomize project",
			}
		}
	}()
	guardLog()
	if v.ownRules {
		openapi.ResetOpenAPI()
		defer openapi.ResetOpenAPI()
	} else {
		openapi.Schema() // loads it, so that builds side by side only read it
	}
	// No plugins, no files from outside of the folders of kustomizations. The order does not matter, because the Set has its own.
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	m, err := krusty.MakeKustomizer(options).Run(&kustFS{v.tree, v}, outside(v.root))
	if v.tree.broken != nil {
		return nil, v.tree.broken
	}
	if err != nil {
		return nil, explain(v, err)
	}
	return v.results(m)
}

// Panic is a panic of a library that was made an error. It is found with errors.As; its stack is for logs.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what the panic said.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// results makes kustomize's resources our objects.
func (v *vetter) results(m resmap.ResMap) ([]Object, error) {
	if m.Size() > v.tree.limits.Objects {
		return nil, tooMany(v.tree.limits.Objects)
	}
	var bad faults
	objects := make([]Object, 0, m.Size())
	for _, r := range m.Resources() {
		o, err := v.result(r)
		bad.add(err)
		objects = append(objects, o)
	}
	return objects, bad.join()
}

// result makes one object, and takes out where it comes from, unless the kustomization wants that to be there.
func (v *vetter) result(r *resource.Resource) (Object, error) {
	at := v.origin(r)
	if !slices.Contains(v.read[v.root].BuildMetadata, types.OriginAnnotations) {
		if err := r.SetOrigin(nil); err != nil {
			return Object{}, fmt.Errorf("remove the origin of %s: %w", r.CurId(), err)
		}
	}
	j, err := r.MarshalJSON()
	if err != nil {
		return Object{}, fault(at.File, at.Line, "", "%w", &told{fmt.Sprintf("%s %s cannot be written as JSON", r.GetKind(), r.GetName()), err})
	}
	o := Object{Unstructured: &unstructured.Unstructured{}, Origin: at}
	if err := utiljson.Unmarshal(j, &o.Object); err != nil {
		return Object{}, fault(at.File, at.Line, "", "%s %s cannot be read as JSON: %w", r.GetKind(), r.GetName(), err)
	}
	return o, nil
}

// origin says where an object comes from. What a generator made comes from the kustomization that has the generator. A patch may write
// anything into the annotation, so it counts only when it names a file that was read.
func (v *vetter) origin(r *resource.Resource) Origin {
	from, err := r.GetOrigin()
	if err != nil || from == nil {
		return Origin{}
	}
	name := from.Path
	if from.ConfiguredIn != "" {
		name = from.ConfiguredIn
	}
	real, err := v.tree.resolve(path.Join(v.root, name))
	if err != nil || v.tree.files[real] == nil {
		return Origin{}
	}
	at := Origin{File: real}
	if from.ConfiguredIn == "" {
		at.Line = lineOf(v.sources[real], r.GetKind(), r.GetName())
	}
	return at
}

// lineOf finds the object that became the one with this kind and name. Its name may have got prefixes and suffixes, mostly with a
// dash between, and namePrefix and nameSuffix of several kustomizations may have added some. 0 when it is not certain.
func lineOf(sources []source, kind, name string) int {
	best, line, tie := 0, 0, false
	for _, s := range sources {
		if s.kind != kind {
			continue
		}
		switch n := likeness(name, s.name); {
		case n > best:
			best, line, tie = n, s.at.Line, false
		case n == best:
			tie = true
		}
	}
	switch {
	case best == math.MaxInt:
		return line // two of one name differ in their namespaces; the first is near enough
	case best > 0 && !tie:
		return line
	case len(sources) == 1:
		return sources[0].at.Line
	default:
		return 0
	}
}

// likeness says how well a name may have come from another one.
func likeness(name, from string) int {
	if name == from {
		return math.MaxInt
	}
	before, after, ok := strings.Cut(name, from)
	if !ok {
		return 0
	}
	n := 1 + len(from)
	for _, whole := range []bool{before == "" || strings.HasSuffix(before, "-"), after == "" || strings.HasPrefix(after, "-")} {
		if whole {
			n += 1000
		}
	}
	return n
}
