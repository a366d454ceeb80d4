package render

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// mount is where kustomize sees the repository. It is not the root, because a path with too many ".." stops at the root and would lead
// back into the repository.
const mount = "/repository@mooring"

var (
	errReadOnly    = errors.New("the repository is read-only")
	errUnsupported = errors.New("kustomize asked for something that it does not need to build")
)

// kustFS is the file system that kustomize gets: the tree, read-only, with a look at every file before kustomize sees it.
type kustFS struct {
	readOnly
	tree *tree
	*vetter
}

var _ filesys.FileSystem = (*kustFS)(nil)

// inside gives the path in the tree for one of kustomize's.
func inside(name string) (string, error) {
	name = path.Clean(name)
	if name == mount {
		return ".", nil
	}
	if rel, ok := strings.CutPrefix(name, mount+"/"); ok {
		return rel, nil
	}
	return "", errOutside
}

// outside gives kustomize's path for one in the tree.
func outside(real string) string {
	return path.Join(mount, real)
}

// find resolves one of kustomize's paths.
func (k *kustFS) find(name string) (string, fs.FileInfo, error) {
	rel, err := inside(name)
	if err != nil {
		return "", nil, err
	}
	real, err := k.tree.resolve(rel)
	if err != nil {
		return "", nil, err
	}
	info, err := k.tree.stat(real)
	return real, info, err
}

// CleanedAbs splits a path into its folder and file, without symbolic links.
func (k *kustFS) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	real, info, err := k.find(name)
	if err != nil {
		return "", "", &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if info.IsDir() {
		return filesys.ConfirmedDir(outside(real)), "", nil
	}
	if isKustomization(name) {
		// kustomize is about to read it as the kustomization of its folder, unless it is only data with that name.
		dir, _, err := k.find(path.Dir(name))
		if err == nil && (k.read[dir] != nil || k.uses[real] == 0) {
			k.isKustomizationOf(real, dir)
		}
	}
	return filesys.ConfirmedDir(outside(path.Dir(real))), path.Base(real), nil
}

// ReadFile gives a file's content once the vetter let it through.
func (k *kustFS) ReadFile(name string) ([]byte, error) {
	real, info, err := k.find(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	f, err := k.tree.read(real)
	if err != nil {
		return nil, err
	}
	content, err := k.vet(f)
	if err != nil {
		return nil, k.tree.trouble(err)
	}
	return content, nil
}

// IsDir says whether a path is a folder.
func (k *kustFS) IsDir(name string) bool {
	_, info, err := k.find(name)
	return err == nil && info.IsDir()
}

// Exists says whether there is something at a path.
func (k *kustFS) Exists(name string) bool {
	_, _, err := k.find(name)
	return err == nil
}

// ReadDir lists a folder.
func (k *kustFS) ReadDir(name string) ([]string, error) {
	real, _, err := k.find(name)
	if err != nil {
		return nil, err
	}
	entries, err := k.tree.list(real)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// readOnly is what a build does not need of a file system.
type readOnly struct{}

// Create refuses.
func (readOnly) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (readOnly) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (readOnly) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (readOnly) RemoveAll(string) error { return errReadOnly }

// WriteFile refuses.
func (readOnly) WriteFile(string, []byte) error { return errReadOnly }

// Open refuses: a build reads whole files.
func (readOnly) Open(string) (filesys.File, error) { return nil, errUnsupported }

// Glob refuses: a build has no patterns.
func (readOnly) Glob(string) ([]string, error) { return nil, errUnsupported }

// Walk refuses: a build visits what its kustomizations name.
func (readOnly) Walk(string, filepath.WalkFunc) error { return errUnsupported }
