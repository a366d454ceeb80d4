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
