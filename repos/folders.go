package repos

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxFolders is how many folders of a remote are remembered, the ones that were used last.
	maxFolders = 256
	// keepFolder is for how long one is that nobody used.
	keepFolder = 24 * time.Hour
)

// folder is where files were asked for, and which ones are likely to be asked for in a new commit.
type folder struct {
	path string // "." is the root
	deep bool   // the folders in it, too
	used time.Time
	// others are the endings of files that were asked for and are no configuration.
	others map[string]bool
}

// has tells whether a file is likely to be asked for. Links always are, as they lead somewhere.
func (f folder) has(e entry, nested bool) bool {
	switch {
	case e.mode != modeFile && e.mode != modeExec:
		return e.mode == modeLink
	case isConfiguration(e.name):
		return true
	}
	return !nested && f.others[path.Ext(e.name)]
}

// isConfiguration knows the files that a folder of configuration is read for.
func isConfiguration(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return name == "Kustomization"
}

// folders of a remote where files were asked for lately.
type folders struct {
	mu  sync.Mutex
	all map[string]folder
}

// note remembers that a file was asked for, by its folder and name, or a whole folder with an empty name. It returns what
// is worth asking for together with it.
func (fs *folders) note(dir, name string) folder {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.all == nil {
		fs.all = map[string]folder{}
	}
	f, known := fs.all[dir]
	f.path, f.used = dir, time.Now()
	now := f
	switch other := path.Ext(name); {
	case name == "":
		f.deep, now.deep = true, true
	case isConfiguration(name):
		if !known {
			// The folder of a file that is above what somebody wants has much beside that nobody does.
			f.deep = !fs.within(dir)
		}
		now = f
	case f.others[other]: // where two files with an ending are read, others are
	default:
		// It may be anything, so it is asked for alone.
		f.others = maps.Clone(f.others)
		if f.others == nil {
			f.others = map[string]bool{}
		}
		f.others[other] = true
		now = folder{path: dir}
	}
	fs.all[dir] = f
	if len(fs.all) > maxFolders {
		oldest := slices.MinFunc(slices.Collect(maps.Values(fs.all)), func(a, b folder) int { return a.used.Compare(b.used) })
		delete(fs.all, oldest.path)
	}
	return now
}

// within tells whether a folder is remembered that lies below another one. The caller holds the lock.
func (fs *folders) within(dir string) bool {
	for name := range fs.all {
		if name != dir && (dir == "." || strings.HasPrefix(name, dir+"/")) {
			return true
		}
	}
	return false
}

// lately lists the folders, the one used last first, and forgets those that nobody used.
func (fs *folders) lately() []folder {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	maps.DeleteFunc(fs.all, func(_ string, f folder) bool { return time.Since(f.used) > keepFolder })
	return slices.SortedFunc(maps.Values(fs.all), func(a, b folder) int {
		return cmp.Or(b.used.Compare(a.used), strings.Compare(a.path, b.path))
	})
}
