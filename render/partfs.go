package render

import (
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// partFS is the file system of one part. All of it is in memory and was looked at before; there is nothing else that kustomize could come to
// see, and no symbolic links.
type partFS struct {
	readOnly
	files   map[string][]byte
	folders map[string]bool
	stop    func() error
}

var _ filesys.FileSystem = (*partFS)(nil)

func newPartFS(files map[string][]byte, stop func() error) *partFS {
	p := &partFS{files: files, folders: map[string]bool{".": true}, stop: stop}
	for name := range files {
		for dir := path.Dir(name); !p.folders[dir]; dir = path.Dir(dir) {
			p.folders[dir] = true
		}
	}
	return p
}

// CleanedAbs splits a path into its folder and file.
func (p *partFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	rel, err := inside(name)
	switch {
	case err != nil:
	case p.folders[rel]:
		return filesys.ConfirmedDir(outside(rel)), "", nil
	case p.files[rel] != nil:
		return filesys.ConfirmedDir(outside(path.Dir(rel))), path.Base(rel), nil
	default:
		err = fs.ErrNotExist
	}
	return "", "", &fs.PathError{Op: "open", Path: name, Err: err}
}

// ReadFile gives what is to be seen of a file, as long as there is time.
func (p *partFS) ReadFile(name string) ([]byte, error) {
	if err := p.stop(); err != nil {
		return nil, err
	}
	rel, err := inside(name)
	if content, ok := p.files[rel]; ok && err == nil {
		return content, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// IsDir says whether a path is a folder.
func (p *partFS) IsDir(name string) bool {
	rel, err := inside(name)
	return err == nil && p.folders[rel]
}

// Exists says whether there is something at a path.
func (p *partFS) Exists(name string) bool {
	rel, err := inside(name)
	return err == nil && (p.folders[rel] || p.files[rel] != nil)
}

// ReadDir refuses: a build lists no folders.
func (p *partFS) ReadDir(string) ([]string, error) { return nil, errUnsupported }
