package render

import (
	"errors"
	"runtime"
	"slices"
	"sync"
)

// errUndivided says that the build has to be done undivided.
var errUndivided = errors.New("the build cannot be divided")

// divided is a build in parts. Its error is errUndivided, or one that the undivided build would end in as well.
func (v *vetter) divided() (_ []Object, err error) {
	defer func() {
		if p := recover(); p != nil { // whatever it was, the undivided build will say it as it always did
			err = errUndivided
		}
	}()
	d := v.divide()
	if d == nil {
		return nil, errUndivided
	}
	guardLog()
	if err := loadSchema(); err != nil {
		return nil, err
	}
	c := newCutter(d)
	b := &builder{division: d, stop: v.tree.stop}
	for _, leaves := range d.parts() {
		p, err := c.part(leaves)
		if err != nil {
			return nil, errUndivided
		}
		b.parts = append(b.parts, p)
	}
	return b.run()
}

// builder builds the parts of a division.
type builder struct {
	*division
	parts []*part
	stop  func() error

	mu    sync.Mutex
	next  int
	built [][]*Content
	bytes int64
	err   error // the first: from then on no part is begun
}

// run builds the parts, some side by side if nobody else builds, and puts together what they give.
func (b *builder) run() ([]Object, error) {
	b.built = make([][]*Content, len(b.parts))
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(b.parts)) - 1 {
		if builds.TryAcquire(1) {
			others.Go(func() {
				defer builds.Release(1)
				b.work()
			})
		}
	}
	b.work()
	others.Wait()
	if b.err != nil {
		return nil, b.err
	}
	return b.together()
}

// work builds one part after the other, until there is none or one has failed.
func (b *builder) work() {
	for {
		b.mu.Lock()
		n := b.next
		if b.err != nil || n == len(b.parts) {
			b.mu.Unlock()
			return
		}
		b.next++
		b.mu.Unlock()
		objects, bytes, err := b.part(b.parts[n])
		b.mu.Lock()
		b.built[n] = objects
		if b.bytes += bytes; err == nil && b.bytes > b.v.tree.limits.OutputBytes {
			err = tooLarge(b.v.tree.limits)
		}
		if b.err == nil {
			b.err = err
		}
		b.mu.Unlock()
	}
}

// part gives the objects of one part, and how large they are.
func (b *builder) part(p *part) ([]*Content, int64, error) {
	if err := b.stop(); err != nil {
		return nil, 0, err
	}
	cache := b.v.tree.cache
	if kept, ok := cache.part(p.key); ok {
		return kept.objects, kept.bytes, nil
	}
	cache.count(func(c *counts) { c.Parts++ })
	objects, err := p.build(b.v, b.stop)
	if err != nil {
		if stopped := b.stop(); stopped != nil {
			return nil, 0, stopped
		}
		return nil, 0, errUndivided
	}
	bytes := int64(0)
	for _, o := range objects {
		bytes += o.weight()
	}
	cache.keepPart(p.key, partObjects{objects, bytes})
	return objects, bytes, nil
}

// together puts the objects of all parts in the order that kustomize gives them, and says where each comes from. One that was not expected, or not so
// often, means that something was not understood.
func (b *builder) together() ([]Object, error) {
	type id struct{ apiVersion, kind, namespace, name string }
	members := b.byDir[b.v.root].members
	expected := make(map[id]int, len(members))
	for i := range members {
		m := &members[i]
		expected[id{m.gvk.ApiVersion(), m.gvk.Kind, m.namespace, m.now.name}] = i
	}
	all := make([]Object, len(members))
	for _, objects := range b.built {
		for _, o := range objects {
			i, ok := expected[id{o.GetAPIVersion(), o.GetKind(), o.GetNamespace(), o.GetName()}]
			if !ok || all[i].Content != nil {
				return nil, errUndivided
			}
			all[i] = Object{Content: o, Origin: members[i].source.at}
		}
	}
	all = slices.DeleteFunc(all, func(o Object) bool { return o.Content == nil }) // local, or deleted by a patch
	if b.loose && settle(slices.Clone(all), b.v.tree.limits) != nil {
		return nil, errUndivided // only the order of several faults is at stake
	}
	return all, nil
}
