package render

import (
	"container/list"
	"crypto/sha256"
	"slices"
	"sync"
)

// Cache keeps what renders gave, so that a commit costs what it changes. It may be shared by any number of Renderers and goroutines, and by
// repositories that have nothing to do with each other: what is kept is found by what decided it, never by where it was.
//
// Three things are kept. The whole Set of a folder serves as long as everything that was looked at to make it looks the same: the hash of every file
// that was read, every name that was not there, the names in every folder that was listed, and where every symbolic link leads; then not one file is
// read. A part of a divided build is found by a hash of all that kustomize saw of it. And what is in a file is found by its path and hash, and what is in
// a document by the hash of its text.
//
// What failed is not kept. When it grows over its size, what was not used for the longest time goes.
type Cache struct {
	mu      sync.Mutex
	max     int64
	size    int64
	order   *list.List // of *entry, the one used last in front
	entries map[any]*list.Element
	sets    map[setKey][]*list.Element
	fresh   int // entries that came since they were gathered last
	counts  counts
}

// counts say what was done, and what was not because of a Cache.
type counts struct {
	Undivided int // runs of kustomize over a whole
	Parts     int // runs of kustomize over a part
	Sets      int // Sets that were given again
	PartHits  int // parts that were
	FileHits  int // files that were not parsed again
	// DocumentHits are documents of other files that were not.
	DocumentHits int
}

type entry struct {
	key   any
	value any
	bytes int64
}

// fileKey names what is in a file; one without a hash names nothing. plain tells its objects in a folder of plain YAML from its sources for kustomize.
type fileKey struct {
	path, hash string
	limits     Limits
	plain      bool
}

type partKey [sha256.Size]byte

// resourceFile is what vetting a file gave.
type resourceFile struct {
	sources []source
	facts   *facts
}

// partObjects are what came out of a part.
type partObjects struct {
	objects []*Content
	bytes   int64
}

// NewCache gives a cache that holds about maxBytes of memory at most. What objects take is estimated.
func NewCache(maxBytes int64) *Cache {
	return &Cache{max: maxBytes, order: list.New(), entries: map[any]*list.Element{}, sets: map[setKey][]*list.Element{}}
}

// inMemory is how many bytes are counted for an object's every byte of JSON. Measured were 13, but most objects are counted twice: in a Set and in a part or a
// file.
const inMemory = 10

// get gives what is kept under a key, and counts it.
func (c *Cache) get(key any, hit func(*counts)) (any, bool) {
	if k, ok := key.(fileKey); c == nil || ok && k.hash == "" {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return nil, false
	}
	hit(&c.counts)
	c.order.MoveToFront(at)
	return at.Value.(*entry).value, true
}

// keep keeps a value, and lets others go for it.
func (c *Cache) keep(key, value any, bytes int64) {
	if k, ok := key.(fileKey); c == nil || bytes > c.max || ok && k.hash == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.entries[key]; ok {
		c.drop(at)
	}
	at := c.order.PushFront(&entry{key, value, bytes})
	c.entries[key] = at
	c.size += bytes
	c.fresh++
	if s, ok := value.(*keptSet); ok {
		c.sets[s.key] = append([]*list.Element{at}, c.sets[s.key]...)
	}
	for c.size > c.max {
		c.drop(c.order.Back())
	}
}

func (c *Cache) drop(at *list.Element) {
	e := c.order.Remove(at).(*entry)
	delete(c.entries, e.key)
	c.size -= e.bytes
	if s, ok := e.value.(*keptSet); ok {
		c.forget(s.key, at)
	}
}

// gather moves the entries together, where many are new; see [Gather]. Called with mu held.
func (c *Cache) gather() {
	if c.fresh <= len(c.entries)/8 {
		return
	}
	order, entries, moved := list.New(), make(map[any]*list.Element, len(c.entries)), make(map[*list.Element]*list.Element, len(c.entries))
	for at := c.order.Front(); at != nil; at = at.Next() {
		e := *at.Value.(*entry)
		moved[at] = order.PushBack(&e)
		entries[e.key] = moved[at]
	}
	for _, all := range c.sets {
		for i, at := range all {
			all[i] = moved[at]
		}
	}
	c.order, c.entries, c.fresh = order, entries, 0
}

func (c *Cache) count(f func(*counts)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.counts)
}

func (c *Cache) resource(key fileKey) (resourceFile, bool) {
	v, ok := c.get(key, func(n *counts) { n.FileHits++ })
	if !ok {
		return resourceFile{}, false
	}
	return v.(resourceFile), true
}

func (c *Cache) keepResource(key fileKey, r resourceFile) {
	c.keep(key, r, int64(len(key.path))+r.bytes())
}

// gathered is the same without room to grow, and with its texts together: they were read among much that goes.
func (r resourceFile) gathered() resourceFile {
	r.sources = slices.Clone(r.sources)
	texts := make([]*string, 0, 4*len(r.sources))
	for i := range r.sources {
		s := &r.sources[i]
		texts = append(texts, &s.apiVersion, &s.kind, &s.namespace, &s.name)
	}
	Gather(texts)
	return r
}

// bytes estimates what it takes in memory.
func (r resourceFile) bytes() int64 {
	bytes := int64(300)
	for _, s := range r.sources {
		bytes += int64(200 + len(s.apiVersion) + len(s.kind) + len(s.namespace) + len(s.name))
	}
	for _, d := range r.facts.documents {
		bytes += 64
		for _, t := range d.texts {
			bytes += int64(16 + len(t))
		}
	}
	return bytes
}

func (c *Cache) document(key documentKey) (resourceDocument, bool) {
	v, ok := c.get(key, func(n *counts) { n.DocumentHits++ })
	if !ok {
		return resourceDocument{}, false
	}
	return v.(resourceDocument), true
}

func (c *Cache) keepDocument(key documentKey, d resourceDocument) { c.keep(key, d, 200+d.bytes()) }

func (c *Cache) plainFile(key fileKey) ([]Object, bool) {
	v, ok := c.get(key, func(n *counts) { n.FileHits++ })
	if !ok {
		return nil, false
	}
	return v.([]Object), true
}

func (c *Cache) keepPlainFile(key fileKey, objects []Object) {
	bytes := int64(len(key.path) + 200)
	for i, o := range objects {
		bytes += 100 + inMemory*o.weight()
		if i == 0 && o.written != nil {
			bytes += int64(len(o.written.content))
		}
	}
	c.keep(key, objects, bytes)
}

func (c *Cache) part(key partKey) (partObjects, bool) {
	v, ok := c.get(key, func(n *counts) { n.PartHits++ })
	if !ok {
		return partObjects{}, false
	}
	return v.(partObjects), true
}

func (c *Cache) keepPart(key partKey, p partObjects) {
	c.keep(key, p, 200+int64(100*len(p.objects))+inMemory*p.bytes)
}
