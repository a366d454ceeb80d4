package render

import (
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	jsonyaml "sigs.k8s.io/yaml"
)

// A build by kustomize takes time that grows with the square of its objects: whatever is appended is compared with all that is there. So a build
// is divided where that makes no difference. Each part is a build of its own over the same kustomizations, which are given to kustomize
// with only what concerns some of the documents that hold objects. What a part sees is complete (see partFS), so what it sees
// decides what it gives, and that can be kept (see Cache).
//
// It makes no difference where all that the kustomizations do, they do to each object alone. Three things are not like that, and are
// looked at here, with all objects in view:
//
//   - No two objects may have the same id at any level. What ids the objects have is followed through the levels, which is possible because only
//     namespaces change them; what else may change them is not divided.
//   - A patch without a target wants exactly one object, and an entry of replicas at least one.
//   - A reference by name and namespace follows an object that gets a namespace. Objects that refer in that way are built together with
//     all that they may refer to. References by name alone need nothing, as names stay.
//
// When anything else is found, or a part fails, or an object comes out that is not expected, the build is done undivided, and what that gives is
// given: kustomize's own result or error.
type division struct {
	v      *vetter
	levels []*level
	byDir  map[string]*level
	leaves []leaf
	byFile map[string][]int // the leaves of a file, in order

	patchTexts []string // all scalars of all patches
	remembers  bool     // objects may have former ids, which is what references follow
	loose      bool     // kustomize may give the objects in another order
	work       int      // how many members all levels have
}

// leaf is what is not divided any more: a document, or a file that cannot be cut.
type leaf struct {
	file     string
	at, size int // in the file
	first    *source
	texts    []string
	uses     int // how many objects it becomes
	joined   int // the leaf that it has to be together with, or itself: see join
}

// level is a kustomization that is used.
type level struct {
	dir     string
	k       *kustomization
	entries []found // of its resources
	base    map[string]json.RawMessage
	patches []patch
	// replicas are the entries of replicas, with the leaves that each concerns.
	replicas []replica
	members  []member
	byName   map[string][]int // members by all names that they have had
}

type replica struct {
	types.Replica
	leaves []int
}

// member is one object in the making.
type member struct {
	leaf   int
	source *source
	gvk    resid.Gvk
	now    place
	past   []place
	// namespace as it is written, where now has the effective one.
	namespace string
}

// place is what may change of an object's id.
type place struct{ name, namespace string }

func (m *member) any(f func(place) bool) bool {
	return f(m.now) || slices.ContainsFunc(m.past, f)
}

func (m *member) was(at place) bool {
	return m.any(func(p place) bool { return p == at })
}

// divide finds out how a build can be divided; nil when it cannot or need not be.
func (v *vetter) divide() *division {
	worth := v.tree.sizes.worth
	if v.ownRules || worth <= 0 || v.costs[v.root].objects < worth {
		return nil
	}
	d := &division{v: v, byDir: map[string]*level{}, byFile: map[string][]int{}}
	root, ok := d.level(v.root)
	if !ok || len(root.members) < worth {
		return nil
	}
	for _, m := range root.members {
		d.leaves[m.leaf].uses++
	}
	d.join()
	return d
}

// level follows the objects through one kustomization, with all that it uses.
func (d *division) level(dir string) (*level, bool) {
	if l, ok := d.byDir[dir]; ok {
		return l, l != nil
	}
	d.byDir[dir] = nil
	k := d.v.read[dir]
	if k == nil || k.Kind == types.ComponentKind || len(d.v.kustomizations[k.file]) != 1 || d.v.uses[k.file] != 0 || !d.actsOnEach(k) {
		return nil, false
	}
	l := &level{dir: dir, k: k}
	for _, r := range k.found {
		if r.field != "resources" && r.field != "bases" {
			continue
		}
		l.entries = append(l.entries, r)
		if !r.folder {
			if !d.file(l, r.real) {
				return nil, false
			}
		} else if sub, ok := d.level(r.real); ok {
			l.members = append(l.members, sub.members...)
		} else {
			return nil, false
		}
	}
	const most = 10 // levels that all objects go through
	d.work += len(l.members)
	if len(l.members) == 0 || d.work > most*d.v.tree.limits.Objects || !distinct(l.members) {
		return nil, false
	}
	if !d.patches(l, false) || !l.settle() || !d.patches(l, true) || !d.counts(l) || !d.prepare(l) {
		return nil, false
	}
	l.byName = nil
	d.levels = append(d.levels, l)
	d.byDir[dir] = l
	return l, true
}

// actsOnEach says whether a kustomization has only fields that act on each object alone.
func (d *division) actsOnEach(k *kustomization) bool {
	for i := 0; i+1 < len(k.doc.root.Content); i += 2 {
		switch strings.ToLower(k.doc.root.Content[i].Value) {
		case "apiversion", "kind", "metadata", "resources", "bases", "namespace", "labels", "commonlabels", "commonannotations",
			"images", "replicas", "patches", "patchesstrategicmerge", "patchesjson6902", "sortoptions":
		default:
			return false
		}
	}
	d.loose = d.loose || k.SortOptions != nil
	d.remembers = d.remembers || k.Namespace != ""
	for _, l := range k.Labels {
		for _, f := range l.FieldSpecs {
			if !strings.HasPrefix(f.Path, "spec/") { // metadata would do for a path that changes the name
				return false
			}
		}
	}
	for _, text := range texts(nil, k.doc.root) {
		if !strings.HasPrefix(text, kustomizeAPI) && speaksToKustomize(text) {
			return false
		}
	}
	return true
}

// file adds the objects of a file to a level.
func (d *division) file(l *level, real string) bool {
	facts, sources := d.v.facts[real], d.v.sources[real]
	if facts == nil || facts.odd || d.v.uses[real] != useResource || len(d.v.kustomizations[real]) > 0 {
		return false
	}
	d.loose = d.loose || facts.whole
	leaves, known := d.byFile[real]
	if !known {
		leaves = d.cut(real, facts, sources)
		d.byFile[real] = leaves
	}
	at := 0
	for i, fact := range facts.documents {
		n := leaves[min(i, len(leaves)-1)]
		for range fact.sources {
			l.members = append(l.members, newMember(&sources[at], n))
			at++
		}
	}
	return at > 0 || !facts.whole
}

// cut makes the leaves of a file.
func (d *division) cut(real string, facts *facts, sources []source) []int {
	var leaves []int
	at := 0
	for _, fact := range facts.documents {
		if facts.whole && len(leaves) > 0 {
			one := &d.leaves[leaves[0]]
			one.texts = append(slices.Clip(one.texts), fact.texts...)
			continue
		}
		one := leaf{file: real, at: fact.at, size: fact.size, first: &sources[at], texts: fact.texts, joined: len(d.leaves)}
		if facts.whole {
			one.at, one.size = 0, len(d.v.tree.files[real].content)
		}
		leaves = append(leaves, len(d.leaves))
		d.leaves = append(d.leaves, one)
		at += fact.sources
	}
	return leaves
}

func newMember(s *source, leaf int) member {
	group, version := resid.ParseGroupVersion(s.apiVersion)
	gvk := resid.NewGvk(group, version, s.kind)
	id := resid.NewResIdWithNamespace(gvk, s.name, s.namespace)
	return member{leaf: leaf, source: s, gvk: gvk, now: place{s.name, id.EffectiveNamespace()}, namespace: s.namespace}
}

// distinct says whether no two objects have the same id.
func distinct(members []member) bool {
	type id struct {
		group, version, kind string
		place
	}
	seen := make(map[id]struct{}, len(members))
	for i := range members {
		m := &members[i]
		seen[id{m.gvk.Group, m.gvk.Version, m.gvk.Kind, m.now}] = struct{}{}
	}
	return len(seen) == len(members)
}

// settle gives the objects the namespace of the kustomization.
func (l *level) settle() bool {
	ns := l.k.Namespace
	if ns == "" {
		return true
	}
	for i := range l.members {
		m := &l.members[i]
		m.past = append(slices.Clip(m.past), m.now)
		if m.gvk.Kind == "Namespace" && m.gvk.ApiVersion() == types.MetadataNamespaceApiVersion {
			m.now.name = ns
		}
		if !m.gvk.IsClusterScoped() {
			m.namespace = ns
		}
		m.now.namespace = resid.NewResIdWithNamespace(m.gvk, m.now.name, m.namespace).EffectiveNamespace()
	}
	l.byName = nil
	return distinct(l.members)
}

// named lists the members that have, or have had, a name.
func (l *level) named(name string) []int {
	if l.byName == nil {
		l.byName = make(map[string][]int, len(l.members))
		for i := range l.members {
			m := &l.members[i]
			l.byName[m.now.name] = append(l.byName[m.now.name], i)
			for j, p := range m.past {
				if p.name != m.now.name && !slices.ContainsFunc(m.past[:j], func(q place) bool { return q.name == p.name }) {
					l.byName[p.name] = append(l.byName[p.name], i)
				}
			}
		}
	}
	return l.byName[name]
}

// counts finds what the entries of replicas concern. Each wants one object at least.
func (d *division) counts(l *level) bool {
	for _, r := range l.k.Replicas {
		one := replica{Replica: r}
		for _, i := range l.named(r.Name) {
			switch l.members[i].gvk.Kind {
			case "Deployment", "ReplicationController", "ReplicaSet", "StatefulSet":
				one.leaves = append(one.leaves, l.members[i].leaf)
			}
		}
		if len(one.leaves) == 0 {
			return false
		}
		l.replicas = append(l.replicas, one)
	}
	return true
}

// prepare takes the kustomization apart into what every part gets and what only some do.
func (d *division) prepare(l *level) bool {
	j, err := jsonyaml.YAMLToJSON(d.v.tree.files[l.k.file].content)
	if err != nil || json.Unmarshal(j, &l.base) != nil {
		return false
	}
	for name := range l.base {
		switch strings.ToLower(name) {
		case "resources", "bases", "replicas", "patches", "patchesstrategicmerge", "patchesjson6902", "commonlabels", "labels":
			delete(l.base, name)
		}
	}
	// A label with selectors is what a common label is to kustomize, and it does not warn of it once for every part.
	labels := slices.Clone(l.k.Labels)
	if common := old(&l.k.Kustomization).commonLabels; len(common) > 0 {
		labels = append(labels, types.Label{Pairs: common, IncludeSelectors: true})
	}
	if len(labels) == 0 {
		return true
	}
	text, err := json.Marshal(labels)
	l.base["labels"] = text
	return err == nil
}
