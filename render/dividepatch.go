package render

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// patch is one patch of a kustomization: an entry of a list of patches, or one of the documents of such an entry. It goes to the parts that
// have an object that it may concern.
type patch struct {
	field   string
	entry   types.Patch // its target and options
	content []byte
	// leaves are the documents of resources that it may concern.
	leaves []int
}

// patches takes the patches of a kustomization apart, in the order in which kustomize applies them: those that come before a namespace is
// set, or those that come after. false means that one of them is not what it must be for a divided build.
func (d *division) patches(l *level, settled bool) bool {
	if settled {
		for _, p := range old(&l.k.Kustomization).json6902Patches {
			if p.Target == nil || !d.entry(l, "patchesJson6902", p) {
				return false
			}
		}
		return true
	}
	for _, p := range old(&l.k.Kustomization).mergePatches {
		content, ok := d.mergePatch(l, string(p))
		if !ok || !d.patch(l, "patchesStrategicMerge", types.Patch{}, content) {
			return false
		}
	}
	for _, p := range l.k.Patches {
		if !d.entry(l, "patches", p) {
			return false
		}
	}
	return true
}

// mergePatch gives the text of an entry of patchesStrategicMerge, which is a patch or the path of one.
func (d *division) mergePatch(l *level, entry string) ([]byte, bool) {
	if docs, err := parse(l.k.file, []byte(entry), d.v.tree.limits, false); err == nil && anyMapping(docs) {
		return []byte(entry), true
	}
	return d.patchFile(l, "patchesStrategicMerge", entry)
}

// patchFile gives the text of a file that is a patch and nothing else.
func (d *division) patchFile(l *level, field, value string) ([]byte, bool) {
	at := slices.IndexFunc(l.k.found, func(r found) bool { return r.field == field && r.value == value })
	if at < 0 {
		return nil, false
	}
	real := l.k.found[at].real
	f := d.v.tree.files[real]
	if f == nil || d.v.uses[real] != usePatch || len(d.v.kustomizations[real]) > 0 {
		return nil, false
	}
	return f.content, true
}

// entry takes one entry of patches or patchesJson6902.
func (d *division) entry(l *level, field string, p types.Patch) bool {
	if o := p.Options; o != nil && (o.AllowKindChange || o.AllowNameChange) {
		return false
	}
	content := []byte(p.Patch)
	if field == "patches" {
		content = []byte(strings.TrimSpace(p.Patch)) // as kustomize does, also where it shifts the first line
	}
	switch {
	case (len(content) > 0) == (p.Path != ""):
		return false
	case p.Path != "":
		var ok bool
		if content, ok = d.patchFile(l, field, p.Path); !ok {
			return false
		}
	}
	p.Path, p.Patch = "", ""
	return d.patch(l, field, p, content)
}

// patch examines a patch as kustomize will see it.
func (d *division) patch(l *level, field string, entry types.Patch, content []byte) bool {
	docs, err := parse(l.k.file, content, d.v.tree.limits, false)
	if err != nil || len(docs) == 0 || oddSeparators(content) || entry.Target != nil && len(docs) > 1 {
		return false
	}
	for _, doc := range docs {
		root := target(doc.root)
		words := texts(nil, root)
		if slices.ContainsFunc(words, speaksToKustomize) {
			return false
		}
		d.patchTexts = append(d.patchTexts, words...)
		p := patch{field: field, entry: entry, content: content}
		if len(docs) > 1 {
			p.content = doc.text
		}
		ok := false
		switch {
		case root.Kind == yaml.MappingNode && field != "patchesJson6902":
			ok = d.merges(l, &p, root)
		case root.Kind == yaml.SequenceNode && entry.Target != nil:
			ok = keepsIdentity(root) && d.selects(l, &p)
			d.remembers = true
		}
		if !ok {
			return false
		}
		l.patches = append(l.patches, p)
	}
	return true
}

// merges finds what a patch concerns that is merged. It cannot change what the object is called: kustomize puts that back.
func (d *division) merges(l *level, p *patch, root *yaml.Node) bool {
	version, kind, meta := scalar(root, "apiVersion"), scalar(root, "kind"), field(root, "metadata")
	if strings.HasSuffix(kind, "List") {
		return false
	}
	if p.entry.Target != nil {
		return d.selects(l, p)
	}
	name := scalar(meta, "name")
	if version == "" || kind == "" || name == "" {
		return false
	}
	group, v := resid.ParseGroupVersion(version)
	gvk := resid.NewGvk(group, v, kind)
	id := resid.NewResIdWithNamespace(gvk, name, scalar(meta, "namespace"))
	is := place{name, id.EffectiveNamespace()}
	matches := 0
	for _, i := range l.named(name) {
		if m := &l.members[i]; m.gvk.Equals(gvk) && m.was(is) {
			matches++
			p.leaves = append(p.leaves, m.leaf)
		}
	}
	return matches == 1
}

// selects finds what a patch with a target may concern: all that has been where the target looks. Labels and annotations are left
// to kustomize.
func (d *division) selects(l *level, p *patch) bool {
	s, err := types.NewSelectorRegex(p.entry.Target)
	if err != nil {
		return false
	}
	may := func(m *member) bool {
		return s.MatchGvk(m.gvk) && m.any(func(at place) bool { return s.MatchName(at.name) && s.MatchNamespace(at.namespace) })
	}
	if name := p.entry.Target.Name; name != "" && !strings.ContainsAny(name, `\.+*?()|[]{}^$`) {
		for _, i := range l.named(name) {
			if may(&l.members[i]) {
				p.leaves = append(p.leaves, l.members[i].leaf)
			}
		}
	} else {
		for i := range l.members {
			if may(&l.members[i]) {
				p.leaves = append(p.leaves, l.members[i].leaf)
			}
		}
	}
	if len(p.leaves) == 0 {
		// What is wrong with it has to be seen by somebody.
		p.leaves = []int{l.members[0].leaf}
	}
	return true
}

// keepsIdentity says whether a JSON patch leaves alone what an object is called.
func keepsIdentity(ops *yaml.Node) bool {
	for _, op := range ops.Content {
		op = target(op)
		if op.Kind != yaml.MappingNode || namesObject(scalar(op, "path")) || scalar(op, "op") == "move" && namesObject(scalar(op, "from")) {
			return false
		}
	}
	return true
}

// namesObject says whether a JSON pointer leads to something that an object is known by, or to something that holds it. As the
// library does, it does not look at what is before the first slash.
func namesObject(pointer string) bool {
	steps := strings.Split(pointer, "/")[1:]
	for i, s := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	switch {
	case len(steps) == 0 || steps[0] == "kind" || steps[0] == "apiVersion":
		return true
	case steps[0] == "metadata":
		return len(steps) == 1 || steps[1] == "name" || steps[1] == "namespace"
	default:
		return false
	}
}
