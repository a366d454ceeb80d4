package render

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// written is an object as it stands in a file, or in the generator that makes it, and what happens to it from there on. It is shared by all copies of
// the Object that became of it, and changed by nobody. It holds the text of files and no parsed YAML, which is many times larger.
type written struct {
	source
	content []byte   // of the file
	first   *passage // the kustomization that brings it in; nil in a folder of plain YAML
	made    bool     // by a generator, whose entry is at the place
}

// passage is one use of a kustomization: a base that two overlays use has two.
type passage struct {
	*stage
	next *passage // the one that gets its objects then; nil for the root
}

// stage is what a kustomization does, as far as it can be followed without kustomize.
type stage struct {
	file           string
	prefix, suffix string
	namespace      string
	namespaceLine  int
	patches        []patchText // in the order in which kustomize applies them
}

// called is how an object is called at some time.
type called struct{ name, namespace string }

// calls gives how an object is called when it comes to each step, and how in the end, as kustomize's own fields tell.
func (w *written) calls() []called {
	now := called{w.name, w.namespace}
	all := []called{now}
	for s := w.first; s != nil; s = s.next {
		now = s.rename(w.kind, now)
		all = append(all, now)
	}
	return all
}

// rename gives how an object is called after a kustomization. kustomize puts neither prefixes nor suffixes on names that mean something
// elsewhere.
func (s *stage) rename(kind string, c called) called {
	if s.namespace != "" {
		c.namespace = s.namespace
	}
	switch kind {
	case "CustomResourceDefinition", "APIService", "Namespace":
	default:
		c.name = s.prefix + c.name + s.suffix
	}
	return c
}

// lineage knows what became of everything that a build reads. kustomize knows it too, while it builds, and takes its notes out in the end.
type lineage struct {
	v      *vetter
	stages map[string]*stage // by folder
	became map[lineageKey][]*written
	at     map[Origin][]*written
}

type lineageKey struct{ group, kind, name string }

// traced gives the objects of a build with where and how they were written. The ones given are not changed.
func (v *vetter) traced(objects []Object) []Object {
	l := &lineage{v: v, stages: map[string]*stage{}, became: map[lineageKey][]*written{}, at: map[Origin][]*written{}}
	l.use(v.root, nil)
	objects = slices.Clone(objects)
	for i := range objects {
		o := &objects[i]
		switch o.written = l.find(*o); {
		case o.written != nil:
			o.Origin = o.written.at
		case o.Origin.File == "":
			o.Origin = v.similar(o.GetKind(), o.GetName(), sortedKeys(v.sources))
		}
	}
	return objects
}

// use follows one use of the kustomization of a folder, and gives the step that its own objects take first.
func (l *lineage) use(dir string, next *passage) *passage {
	k := l.v.read[dir]
	if k == nil {
		return next
	}
	first := &passage{l.stage(dir, k), next}
	// The objects of a kustomization go through its components, one after the other, before it does its own part; and so do those that an earlier
	// component brings.
	for _, r := range slices.Backward(k.found) {
		if r.field == "components" && r.folder {
			first = l.use(r.real, first)
		}
	}
	for _, r := range k.found {
		switch {
		case r.field != "resources" && r.field != "bases":
		case r.folder:
			l.use(r.real, first)
		default:
			l.file(r.real, first)
		}
	}
	l.generators(k, first)
	return first
}

func (l *lineage) file(real string, first *passage) {
	f := l.v.tree.files[real]
	if f == nil {
		return
	}
	for _, s := range l.v.sources[real] {
		l.add(&written{source: s.bare(), content: f.content, first: first})
	}
}

// generators adds what the generators of a kustomization make anew.
func (l *lineage) generators(k *kustomization, first *passage) {
	add := func(kind, field string, i int, args types.GeneratorArgs) {
		if b := types.NewGenerationBehavior(args.Behavior); b == types.BehaviorMerge || b == types.BehaviorReplace {
			return
		}
		s := source{at: Origin{k.file, k.entryLine(field, i)}, apiVersion: "v1", kind: kind, namespace: args.Namespace, name: args.Name}
		l.add(&written{source: s, content: l.v.tree.files[k.file].content, first: first, made: true})
	}
	for i, g := range k.ConfigMapGenerator {
		add("ConfigMap", "configMapGenerator", i, g.GeneratorArgs)
	}
	for i, g := range k.SecretGenerator {
		add("Secret", "secretGenerator", i, g.GeneratorArgs)
	}
}

func (l *lineage) add(w *written) {
	calls := w.calls()
	key := lineageKey{w.group(), w.kind, calls[len(calls)-1].name}
	l.became[key] = append(l.became[key], w)
	l.at[w.at] = append(l.at[w.at], w)
}

// find gives what an object was made from; nil when that is not certain.
func (l *lineage) find(o Object) *written {
	id := o.ID()
	key := lineageKey{id.Group, id.Kind, id.Name}
	list := l.became[key]
	if base, ok := withoutHash(id); ok {
		key.name = base
		list = append(slices.Clip(list), slices.DeleteFunc(slices.Clone(l.became[key]), func(w *written) bool { return !w.made })...)
	}
	for _, better := range []func(*written) bool{
		func(w *written) bool { return o.Origin.File == "" || w.at.File == o.Origin.File },
		func(w *written) bool { return w.calls()[len(w.calls())-1].namespace == id.Namespace },
		func(w *written) bool { return w.at == o.Origin },
	} {
		if len(list) < 2 {
			break
		}
		if some := slices.DeleteFunc(slices.Clone(list), func(w *written) bool { return !better(w) }); len(some) > 0 {
			list = some
		}
	}
	if len(list) == 1 && (o.Origin.File == "" || list[0].at.File == o.Origin.File) {
		return list[0]
	}
	// Something else gave it its name: a patch, or the configuration of a transformer.
	same := slices.DeleteFunc(slices.Clone(l.at[o.Origin]), func(w *written) bool { return w.kind != id.Kind })
	switch len(same) {
	case 0:
		return nil
	case 1:
		return same[0]
	default:
		w := *same[0]
		w.first = nil
		return &w
	}
}

// withoutHash takes off the hash with which the names of generated objects end.
func withoutHash(id ID) (string, bool) {
	i := strings.LastIndexByte(id.Name, '-')
	const hash = 10 // what kustomize's hasher writes
	if i < 0 || len(id.Name)-i-1 != hash || id.Group != "" || id.Kind != "ConfigMap" && id.Kind != "Secret" {
		return "", false
	}
	return id.Name[:i], true
}

// stage looks at a kustomization, once.
func (l *lineage) stage(dir string, k *kustomization) *stage {
	s, ok := l.stages[dir]
	if !ok {
		s = &stage{file: k.file, prefix: k.NamePrefix, suffix: k.NameSuffix, namespace: k.Namespace}
		if k.Namespace != "" {
			s.namespaceLine = k.line("namespace", "")
		}
		s.patches = l.v.patchTexts(k)
		l.stages[dir] = s
	}
	return s
}

// entryLine gives the line of an entry of a list in the kustomization, or that of the list.
func (k *kustomization) entryLine(name string, i int) int {
	if list := field(k.doc.root, name); list != nil && i < len(list.Content) {
		return k.doc.line(list.Content[i])
	}
	return k.line(name, "")
}

// bare is the source without what was parsed.
func (s source) bare() source {
	s.node, s.doc = nil, document{}
	return s
}

func (s source) group() string {
	group, _, ok := strings.Cut(s.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// patchText is a patch, or several in one file, as it is written.
type patchText struct {
	file   string
	text   []byte
	before int // how many lines of the file come before the text
	only   int // the line for all of it, where the lines of the text are not those of the file; else 0
	target *types.Selector
}

// patchTexts lists the patches of a kustomization in the order in which kustomize applies them.
func (v *vetter) patchTexts(k *kustomization) []patchText {
	var all []patchText
	add := func(name, path, inline string, target *types.Selector) {
		if f := v.tree.files[k.leadsTo(name, path)]; f != nil {
			all = append(all, patchText{file: f.path, text: f.content, target: target})
		} else if n := findScalar(k.doc.root, inline); n != nil && inline != "" {
			p := patchText{file: k.file, text: []byte(inline), before: k.doc.line(n), target: target}
			if n.Style&yaml.LiteralStyle == 0 {
				p.only = k.doc.line(n)
			}
			all = append(all, p)
		}
	}
	for _, p := range old(&k.Kustomization).mergePatches {
		add("patchesStrategicMerge", string(p), string(p), nil)
	}
	for _, p := range k.Patches {
		add("patches", p.Path, p.Patch, p.Target)
	}
	for _, p := range old(&k.Kustomization).json6902Patches {
		add("patchesJson6902", p.Path, p.Patch, p.Target)
	}
	return all
}

// leadsTo gives the file that a path in the kustomization leads to, or "".
func (k *kustomization) leadsTo(field, value string) string {
	for _, f := range k.found {
		if f.field == field && f.value == value && !f.folder {
			return f.real
		}
	}
	return ""
}
