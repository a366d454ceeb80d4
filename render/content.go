package render

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Content is what an object says. It never changes, so any number of Sets share it. Make one with [ContentOf].
//
// What an object is called is at hand always. The rest is a tree of maps while somebody works with it, which takes ten times as much memory as the
// same in bytes and gives the garbage collector as much more to look at. An agent holds all objects of all its paths for days, and works with them when a commit
// or drift comes. So [Set.Rest] leaves the bytes, and the tree is made again when it is asked for.
type Content struct {
	identity atomic.Pointer[identity]
	formed   bool         // wellFormed has nothing to say
	bytes    atomic.Int64 // see weigh; 0 as long as nobody has asked
	note     atomic.Value // see Note

	whole atomic.Pointer[unstructured.Unstructured] // nil while it rests
	asked atomic.Uint32                             // the round in which somebody asked for whole last
	// packed is written once, before whole is first nil, and read only when it is.
	packed string
	// odd is true for what cannot be packed; guarded by packing.
	odd bool
}

// identity is what an object is called. It is replaced by an equal one when the object is packed.
type identity struct {
	kind unique.Handle[kindAndNamespace]
	name string
}

// kindAndNamespace is what many objects have in common.
type kindAndNamespace struct{ apiVersion, group, kind, namespace string }

// round tells what was asked for of late from what was not.
var round atomic.Uint32

// NextRound begins another round. What nobody asks for until the next one is idle; see [Set.Rest].
func NextRound() { round.Add(1) }

// packing is held by whoever packs. It happens now and then, in the background, and guards what a lock in each of many thousand objects would.
var packing sync.Mutex

// ContentOf takes an object in. The object belongs to the Content from then on: nobody writes into it any more. Of nil it is nil.
func ContentOf(u *unstructured.Unstructured) *Content {
	if u == nil {
		return nil
	}
	id := IDOf(u)
	c := &Content{}
	c.asked.Store(round.Load()) // whoever has made it is about to work with it
	c.identity.Store(&identity{unique.Make(kindAndNamespace{u.GetAPIVersion(), id.Group, id.Kind, id.Namespace}), id.Name})
	c.whole.Store(u)
	c.formed = wellFormed(Object{Content: c}) == nil
	return c
}

// Unstructured is the object. Nobody may write into it: all who ask have the same one, until the Content rests.
func (c *Content) Unstructured() *unstructured.Unstructured {
	if now := round.Load(); c.asked.Load() != now {
		c.asked.Store(now)
	}
	for {
		if u := c.whole.Load(); u != nil {
			return u
		}
		u, err := unpack(c.packed)
		if err != nil {
			panic(fmt.Sprintf("unpack %s: %v", c.ID(), err)) // it was tried when it was packed
		}
		if c.whole.CompareAndSwap(nil, u) {
			return u
		}
	}
}

// weight is about how many bytes the object has as JSON.
func (c *Content) weight() int64 {
	n := c.bytes.Load()
	if n == 0 {
		n = weigh(c.Unstructured().Object)
		c.bytes.Store(n)
	}
	return n
}

// ID of the object.
func (c *Content) ID() ID {
	is := c.identity.Load()
	k := is.kind.Value()
	return ID{k.group, k.kind, k.namespace, is.name}
}

// GetName gives metadata.name; empty when it is no text.
func (c *Content) GetName() string { return c.identity.Load().name }

// GetNamespace gives metadata.namespace; empty when it is no text.
func (c *Content) GetNamespace() string { return c.identity.Load().kind.Value().namespace }

// GetKind gives the kind; empty when it is no text.
func (c *Content) GetKind() string { return c.identity.Load().kind.Value().kind }

// GetAPIVersion gives the apiVersion; empty when it is no text.
func (c *Content) GetAPIVersion() string { return c.identity.Load().kind.Value().apiVersion }

// GroupVersionKind of the object; empty when its apiVersion is none.
func (c *Content) GroupVersionKind() schema.GroupVersionKind {
	k := c.identity.Load().kind.Value()
	gv, err := schema.ParseGroupVersion(k.apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}
	}
	return gv.WithKind(k.kind)
}

// GetAnnotations gives metadata.annotations, as a copy.
func (c *Content) GetAnnotations() map[string]string { return c.Unstructured().GetAnnotations() }

// GetLabels gives metadata.labels, as a copy.
func (c *Content) GetLabels() map[string]string { return c.Unstructured().GetLabels() }

// Note keeps what somebody found out about the object and would find out again each time, for as long as the Content lives. There is one place for it, and all notes
// are of one type: it is for who applies the object.
func (c *Content) Note(v any) { c.note.Store(v) }

// Noted gives what was noted last; nil for nothing.
func (c *Content) Noted() any { return c.note.Load() }

// Resting is true while there are the bytes alone.
func (c *Content) Resting() bool { return c.whole.Load() == nil }

// Rest lets the trees of all its objects go, or if idle is true, of those alone that nobody has asked for in this round. Whoever has one keeps it, and who asks for it
// gets another. It may be called at any time. letGo is about how many bytes of memory that is.
func (s *Set) Rest(idle bool) (letGo int64) {
	if s == nil {
		return 0
	}
	return Rest(contentsOf(s.Objects), idle)
}

// Rest lets the trees of all objects go that are kept; see [Set.Rest].
func (c *Cache) Rest(idle bool) (letGo int64) {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	c.gather()
	var lists [][]*Content
	for e := c.order.Front(); e != nil; e = e.Next() {
		switch v := e.Value.(*entry).value.(type) {
		case partObjects:
			lists = append(lists, v.objects)
		case []Object: // of a plain file
			lists = append(lists, contentsOf(v))
		case *keptSet:
			lists = append(lists, contentsOf(v.set.Objects))
		}
	}
	c.mu.Unlock()
	for _, all := range lists {
		letGo += Rest(all, idle)
	}
	return letGo
}

func contentsOf(objects []Object) []*Content {
	all := make([]*Content, len(objects))
	for i, o := range objects {
		all[i] = o.Content
	}
	return all
}

// Rest lets the trees of objects go; see [Set.Rest].
func Rest(all []*Content, idle bool) (letGo int64) {
	packing.Lock()
	defer packing.Unlock()
	if idle {
		now := round.Load()
		all = slices.DeleteFunc(slices.Clone(all), func(c *Content) bool { return c == nil || c.asked.Load() == now })
	}
	packAll(all)
	for _, c := range all {
		if c != nil && c.packed != "" && c.whole.Swap(nil) != nil {
			letGo += inMemory * c.bytes.Load()
		}
	}
	return letGo
}

// packAll that are not yet. They have one piece of memory together, which stays until the last of them goes: many small ones of different age would leave holes between
// them that nothing else fits into.
func packAll(all []*Content) {
	var bytes []byte
	var fresh []*Content
	var ends []int
	var identities []identity
	for _, c := range all {
		if c == nil || c.packed != "" || c.odd {
			continue
		}
		one, ok := pack(c.whole.Load())
		if !ok {
			c.odd = true
			continue
		}
		c.weight() // while it can be seen
		bytes = append(bytes, one...)
		fresh, ends = append(fresh, c), append(ends, len(bytes))
		identities = append(identities, *c.identity.Load())
	}
	text, begin := string(bytes), 0
	names := make([]*string, len(fresh))
	identities = slices.Clip(identities)
	for i, c := range fresh {
		c.packed, begin = text[begin:ends[i]], ends[i]
		names[i] = &identities[i].name
	}
	Gather(names)
	for i, c := range fresh {
		c.identity.Store(&identities[i])
	}
}

// pack gives an object as CBOR, which unlike JSON knows 1.0 from 1. It is false for what would not come back as it was: objects came from JSON or YAML, so there
// should be none, and what is applied must not hang on that.
func pack(u *unstructured.Unstructured) (packed []byte, ok bool) {
	packed, err := direct.Marshal(u.Object)
	if err != nil {
		return nil, false
	}
	again, err := unpack(string(packed))
	if err != nil || !reflect.DeepEqual(again.Object, u.Object) {
		return nil, false
	}
	return packed, true
}

func unpack(packed string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	err := direct.Unmarshal([]byte(packed), &u.Object)
	return u, err
}
