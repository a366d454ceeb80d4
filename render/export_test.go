package render

import (
	"io/fs"
)

// Trace renders the folder of a kustomization, and gives the names that the result depends on beside the files that were read: those that
// were not there, and folders that were listed.
func Trace(fsys fs.FS, dir string) (misses, listed []string, err error) {
	t := newTree(fsys, DefaultLimits(), func() error { return nil })
	k, err := t.kustomizationIn(dir)
	if err != nil {
		return nil, nil, err
	}
	if k != "" {
		v := newVetter(t, dir)
		if err = v.walk(); err == nil {
			_, err = v.run()
		}
	} else {
		_, err = t.plain(dir)
	}
	return sortedKeys(t.misses), sortedKeys(t.folders), err
}

// Counts say what was done, and what was not because of a Cache.
type Counts = counts

// Counts gives what was counted since the last time.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.counts
	c.counts = counts{}
	return now
}

// Size says how much a cache holds, as it estimates it, and in how many entries.
func (c *Cache) Size() (bytes int64, entries int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size, len(c.entries)
}

// Divide makes a Renderer divide builds of that many objects or more, in parts of few to many objects; with 0, it divides none. What is in each document is kept of
// every file that has two.
func (r *Renderer) Divide(worth, few, many int) *Renderer {
	if worth == 0 {
		worth = -1
	}
	r.sizes = sizes{worth, few, many, 2}
	return r
}
