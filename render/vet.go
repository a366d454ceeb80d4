package render

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
)

// vetter decides what kustomize may read.
//
// It goes through all that a kustomization names before kustomize starts (see walk.go), so that a user is told all faults of a commit at
// once, with their lines. And it looks at every file again at the moment at which kustomize reads it, which is what makes it complete: kustomize
// reads a kustomization before it does anything that the kustomization says, and there is no other way for a text to get to it.
//
// There are two ways from a repository to the network or to a program, and both start with a text that kustomize takes for a path:
// its loader fetches http and https URLs itself, and hands what looks like a repository to git. Those texts are in kustomizations, in
// the configurations of its built-in plugins, and nowhere else. Plugins that are not built in, functions and Helm are
// switched off in kustomize's options as well.
type vetter struct {
	tree *tree
	root string // the folder that is rendered

	// What the kustomizations seen so far say of the files that kustomize will read, by resolved path.
	kustomizations map[string][]string // file → folders whose kustomization it is (more than one with symbolic links)
	uses           map[string]use
	pluginFolders  map[string]bool

	read     map[string]*kustomization // by folder
	sources  map[string][]source       // the objects of the files that were read as resources
	facts    map[string]*facts         // and what else a divided build has to know of these files
	verdicts map[verdictKey]error
	costs    map[string]cost // by folder
	faults   faults
	ownRules bool // a kustomization has an openapi field
	notes    bool // kustomize is to note where objects come from
}

// use is what a file is for. A file may have several.
type use uint8

const (
	useResource use = 1 << iota // holds objects
	usePatch                    // holds YAML that kustomize interprets
	usePlugin                   // holds configurations of transformers or generators
	useSchema                   // an OpenAPI schema
	useCRDs                     // OpenAPI definitions of custom resources
	useData                     // anything, for a ConfigMap or Secret
)

// verdictKey names a look at a file for one use.
type verdictKey struct {
	file string
	use  use
}

func newVetter(t *tree, root string) *vetter {
	return &vetter{
		tree: t, root: root,
		kustomizations: map[string][]string{}, uses: map[string]use{}, pluginFolders: map[string]bool{},
		read: map[string]*kustomization{}, sources: map[string][]source{}, facts: map[string]*facts{}, verdicts: map[verdictKey]error{}, costs: map[string]cost{},
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
		if dir == v.root && v.notes {
			if content, err = withOrigins(k, f.content); err != nil {
				return nil, err
			}
		}
	}
	if len(v.kustomizations[f.path]) > 0 && v.uses[f.path] == 0 {
		return content, nil
	}
	return content, v.suits(f, v.uses[f.path])
}

// suits says why a file does not suit one of its uses.
func (v *vetter) suits(f *file, uses use) error {
	var bad faults
	for _, u := range []use{useResource, usePlugin, usePatch, useSchema, useCRDs} {
		if uses&u != 0 {
			bad.add(v.verdict(f, u))
		}
	}
	if uses == 0 || uses&useData != 0 {
		bad.add(v.verdict(f, useData))
	}
	return bad.join()
}

// verdict looks at a file for one use, once.
func (v *vetter) verdict(f *file, u use) error {
	key := verdictKey{f.path, u}
	if err, ok := v.verdicts[key]; ok {
		return err
	}
	err := v.examine(f, u)
	v.verdicts[key] = err
	return err
}

func (v *vetter) examine(f *file, u use) error {
	switch u {
	case useResource:
		return v.examineResource(f)
	case usePlugin:
		docs, err := v.tree.parse(f)
		if err != nil {
			return err
		}
		return pluginDocs(f.path, docs)
	case useData:
		// It may be anything. What the configuration of a plugin names is here too, and may be a patch.
		if !bytes.Contains(f.content, []byte("&")) || !bytes.Contains(f.content, []byte("*")) {
			return nil
		}
		if _, err := parse(f.path, f.content, v.tree.limits, true); errors.Is(err, errBomb) {
			return err
		}
		return nil
	}
	if _, err := v.tree.parse(f); err != nil {
		return err
	}
	switch u {
	case useSchema:
		return schemaLoops(f)
	case useCRDs:
		return definitionLoops(f)
	default:
		return nil
	}
}

// examineResource finds the objects in a file. Of what is cached, the content is the same, and it was good.
func (v *vetter) examineResource(f *file) error {
	key := fileKey{f.path, f.hash, v.tree.limits, false}
	if found, ok := v.tree.cache.resource(key); ok {
		v.sources[f.path], v.facts[f.path] = found.sources, found.facts
		return nil
	}
	if found, ok := v.fromDocuments(f); ok {
		found = found.gathered()
		v.sources[f.path], v.facts[f.path] = found.sources, found.facts
		v.tree.cache.keepResource(key, found)
		return nil
	}
	list, docs, err := v.tree.resource(f)
	if err == nil {
		err = textKeys(f.path, list)
	}
	all := factsOf(f, list, docs)
	for i := range list { // the nodes are many times larger than the text
		list[i].node, list[i].doc = nil, document{}
	}
	found := resourceFile{list, all}.gathered()
	v.sources[f.path], v.facts[f.path] = found.sources, found.facts
	if err == nil {
		v.tree.cache.keepResource(key, found)
	}
	return err
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

// found is where a reference leads.
type found struct {
	reference
	real   string
	folder bool
}

// kind is what a reference may lead to.
type kind uint8

const (
	aFile   kind = iota // a file at or below the kustomization's folder
	aFolder             // a folder with a kustomization
	either
)

// refer finds what a reference of the kustomization in dir leads to, and notes what that is for.
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
	// As kustomize does: first the ".." are taken out, then symbolic links are followed.
	real, err := v.tree.resolve(path.Join(dir, r.value))
	var info fs.FileInfo
	if err == nil {
		info, err = v.tree.stat(real)
	}
	switch {
	case v.tree.broken != nil:
		return v.tree.broken
	case errors.Is(err, fs.ErrNotExist):
		return bad("", "%s does not exist", r.value)
	case err != nil:
		return bad("", "%s %w", r.value, err)
	case info.IsDir():
		return v.referToFolder(k, dir, found{r, real, true}, bad)
	case irregular(info):
		return bad(irregularHint, "%s %w", r.value, errIrregular)
	case r.as == aFolder:
		return bad("", "%s is a file, not a folder with a kustomization", r.value)
	case !within(real, dir):
		return bad("move it there, or give its folder a kustomization and name that under resources or components",
			"%s is not in or below the folder of the kustomization", r.value)
	}
	v.uses[real] |= r.use
	k.found = append(k.found, found{r, real, false})
	return nil
}

// referToFolder examines a reference that leads to a folder.
func (v *vetter) referToFolder(k *kustomization, dir string, r found, bad func(hint, format string, args ...any) error) error {
	if r.as == aFile {
		return bad("", "%s is a folder", r.value)
	}
	if within(dir, r.real) {
		return bad("", "%s is the folder of the kustomization or one above it, which would go in a circle", r.value)
	}
	name, err := v.tree.kustomizationIn(r.real)
	if err != nil {
		return err
	}
	if name == "" {
		return bad("give it one, or name the files", "the folder %s has no kustomization.yaml", r.value)
	}
	if r.use&usePlugin != 0 && !v.pluginFolders[r.real] {
		// More is asked of it from now on, so it is looked at again.
		v.pluginFolders[r.real] = true
		delete(v.read, r.real)
		delete(v.costs, r.real)
	}
	k.found = append(k.found, r)
	return nil
}

// within says whether a path is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}

// references lists all paths in a kustomization that lead kustomize to a file, in the order in which it reads them.
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
	one("openapi", useSchema, k.OpenAPI["path"])
	many("resources", either, useResource, k.Resources...)
	many("bases", either, useResource, old(k).bases...)
	many("configurations", aFile, usePatch, k.Configurations...)
	many("crds", aFile, useCRDs, k.Crds...)
	generator := func(field string, s types.KvPairSources) {
		for _, f := range s.FileSources {
			if _, after, ok := strings.Cut(f, "="); ok && !remote(f) {
				f = after
			}
			many(field, aFile, useData, f)
		}
		many(field, aFile, useData, s.EnvSources...)
		one(field, useData, s.EnvSource)
	}
	for _, g := range k.ConfigMapGenerator {
		generator("configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		generator("secretGenerator", g.KvPairSources)
	}
	many("components", aFolder, 0, k.Components...)
	for _, p := range k.Patches {
		one("patches", usePatch, p.Path)
	}
	for _, p := range old(k).json6902Patches {
		one("patchesJson6902", usePatch, p.Path)
	}
	for _, r := range k.Replacements {
		one("replacements", usePatch, r.Path)
	}
	return refs
}

// isKustomizationOf notes that a file is the kustomization of a folder. It need not be in the folder, nor have the name of a
// kustomization: it may be behind a symbolic link.
func (v *vetter) isKustomizationOf(real, dir string) {
	if !slices.Contains(v.kustomizations[real], dir) {
		v.kustomizations[real] = append(v.kustomizations[real], dir)
	}
}
