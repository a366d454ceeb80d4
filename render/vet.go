package render

import (
	"errors"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
)

// vetter looks at every file at the moment at which kustomize reads it, and refuses what must not happen. kustomize reads a
// kustomization before it does anything that the kustomization says, so this is early enough, and as nothing reaches kustomize
// on another way, it is complete.
//
// There are two ways from a repository to the network or to a program, and both start with a text that kustomize takes for a path:
// its loader fetches http and https URLs itself, and hands what looks like a repository to git. Those texts are in kustomizations, in
// the configurations of its built-in plugins, and nowhere else. Plugins that are not built in, functions and Helm are
// switched off in kustomize's options as well.
type vetter struct {
	tree *tree
	root string // the folder that is rendered

	// What the kustomizations seen so far say of the files that kustomize will read next, by resolved path.
	kustomizations map[string][]string // file → folders whose kustomization it is (more than one with symbolic links)
	uses           map[string]use
	pluginFolders  map[string]bool

	sources  map[string][]source // the objects of the files that were read as resources
	objects  int
	alone    bool // no other build runs: the build may change kustomize's schema
	wantsOwn bool // a kustomization has an openapi field
}

// use is what a file is for. A file may have several.
type use uint8

const (
	useResource use = 1 << iota // holds objects
	usePatch                    // holds YAML that kustomize interprets
	usePlugin                   // holds configurations of transformers or generators
	useSchema                   // an OpenAPI schema
	useCRDs                     // OpenAPI definitions of custom resources
)

var errNeedsAlone = errors.New("the build changes kustomize's schema")

func newVetter(t *tree, root string, alone bool) *vetter {
	return &vetter{
		tree: t, root: root, alone: alone,
		kustomizations: map[string][]string{}, uses: map[string]use{}, pluginFolders: map[string]bool{}, sources: map[string][]source{},
	}
}

// vet gives what kustomize may read in place of the file's content, which is nearly always that content.
func (v *vetter) vet(f *file) ([]byte, error) {
	content := f.content
	for _, dir := range v.kustomizations[f.path] {
		k, err := v.kustomization(f, dir)
		if err != nil {
			return nil, err
		}
		if dir == v.root {
			if content, err = withOrigins(k, f.content); err != nil {
				return nil, err
			}
		}
	}
	u := v.uses[f.path]
	if u&useResource != 0 {
		if err := v.resource(f); err != nil {
			return nil, err
		}
	}
	if u&usePlugin != 0 {
		if err := v.pluginFile(f); err != nil {
			return nil, err
		}
	}
	if u&(usePatch|useSchema|useCRDs) != 0 {
		if _, err := v.tree.parse(f); err != nil {
			return nil, err
		}
	}
	if u&useSchema != 0 {
		if err := schemaLoops(f); err != nil {
			return nil, err
		}
	}
	if u&useCRDs != 0 {
		if err := definitionLoops(f); err != nil {
			return nil, err
		}
	}
	if u == 0 && len(v.kustomizations[f.path]) == 0 {
		return content, v.unknown(f)
	}
	return content, nil
}

// resource examines a file of objects and counts them, as often as kustomize reads it: bases that use a base twice each, many
// levels deep, would else be a bomb.
func (v *vetter) resource(f *file) error {
	s, err := v.tree.sources(f)
	if err != nil {
		return err
	}
	v.sources[f.path] = s
	if v.objects += len(s); v.objects > v.tree.limits.Objects {
		return tooMany(v.tree.limits.Objects)
	}
	return nil
}

// unknown looks at a file whose use is not known: the data of a ConfigMap, which may be anything, or what the configuration of a
// plugin names, which may be a patch. So only what would break kustomize counts.
func (v *vetter) unknown(f *file) error {
	if _, err := parse(f.path, f.content, v.tree.limits, true); errors.Is(err, errBomb) {
		return err
	}
	return nil
}

// remote says whether kustomize would take a path for something on another machine, or whether a user means that.
func remote(p string) bool {
	if strings.Contains(p, "://") || len(p) >= 5 && strings.EqualFold(p[:5], "git::") {
		return true
	}
	if u, err := url.Parse(p); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return true
	}
	// This asks the very function with which kustomize decides whether to run git.
	return new(resource.Origin).Append(p).Repo != ""
}

// reference is a path in a kustomization.
type reference struct {
	field string // as the user wrote it
	value string
	as    kind
	use   use
}

// kind is what a reference may lead to.
type kind uint8

const (
	aFile   kind = iota // a file at or below the kustomization's folder
	aFolder             // a folder with a kustomization
	either
)

// refer examines a reference of the kustomization in dir, and notes what the file behind it is for.
func (v *vetter) refer(k *kustomization, dir string, r reference) error {
	bad := func(hint, format string, args ...any) error {
		return fault(k.file, k.line(r.field, r.value), hint, r.field+": "+format, args...)
	}
	switch {
	case r.value == "":
		return bad("", "an entry is empty")
	case remote(r.value):
		return bad("copy it into the repository", "%s is on another machine, and a render reads the repository only", r.value)
	case path.IsAbs(r.value):
		return bad("write it relative to the folder of the kustomization", "%s is an absolute path", r.value)
	}
	real, err := v.tree.resolve(path.Join(dir, "./"+r.value))
	if strings.HasPrefix(path.Join(dir, r.value)+"/", "../") {
		err = errOutside
	}
	switch {
	case v.tree.broken != nil:
		return v.tree.broken
	case errors.Is(err, fs.ErrNotExist):
		return bad("", "%s does not exist", r.value)
	case err != nil:
		return bad("", "%s %w", r.value, err)
	}
	info, err := v.tree.stat(real)
	if v.tree.broken != nil {
		return v.tree.broken
	}
	switch {
	case err != nil:
		return bad("", "%s does not exist", r.value)
	case info.IsDir():
		return v.folder(real, dir, r, bad)
	case r.as == aFolder:
		return bad("", "%s is a file, not a folder with a kustomization", r.value)
	case !within(real, dir):
		return bad("move it there, or give its folder a kustomization and name that under resources or components",
			"%s is not in or below the folder of the kustomization", r.value)
	}
	v.uses[real] |= r.use
	return nil
}

// folder examines a reference that leads to a folder.
func (v *vetter) folder(real, dir string, r reference, bad func(hint, format string, args ...any) error) error {
	if r.as == aFile {
		return bad("", "%s is a folder", r.value)
	}
	if within(dir, real) {
		return bad("", "%s is the folder of the kustomization or one above it, which would go in a circle", r.value)
	}
	name, err := v.tree.kustomizationIn(real)
	if err != nil {
		return err
	}
	if name == "" {
		return bad("give it one, or name the files", "the folder %s has no kustomization.yaml", r.value)
	}
	if r.use&usePlugin != 0 {
		v.pluginFolders[real] = true
	}
	return nil
}

// within says whether a path is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// references lists all paths in a kustomization that lead kustomize to a file.
func references(k *types.Kustomization) []reference {
	var refs []reference
	many := func(field string, as kind, u use, values ...string) {
		for _, v := range values {
			refs = append(refs, reference{field, v, as, u})
		}
	}
	one := func(field string, u use, value string) {
		if value != "" {
			many(field, aFile, u, value)
		}
	}
	many("resources", either, useResource, k.Resources...)
	many("bases", either, useResource, k.Bases...)
	many("components", aFolder, 0, k.Components...)
	many("crds", aFile, useCRDs, k.Crds...)
	many("configurations", aFile, usePatch, k.Configurations...)
	one("openapi", useSchema, k.OpenAPI["path"])
	for _, p := range k.Patches {
		one("patches", usePatch, p.Path)
	}
	for _, p := range k.PatchesJson6902 {
		one("patchesJson6902", usePatch, p.Path)
	}
	for _, r := range k.Replacements {
		one("replacements", usePatch, r.Path)
	}
	generator := func(field string, s types.KvPairSources) {
		for _, f := range s.FileSources {
			if _, after, ok := strings.Cut(f, "="); ok && !remote(f) {
				f = after
			}
			many(field, aFile, 0, f)
		}
		many(field, aFile, 0, s.EnvSources...)
		one(field, 0, s.EnvSource)
	}
	for _, g := range k.ConfigMapGenerator {
		generator("configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		generator("secretGenerator", g.KvPairSources)
	}
	return refs
}
