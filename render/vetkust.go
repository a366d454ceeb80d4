package render

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// kustomization examines the kustomization of the folder dir, once. With an error it still gives what could be read, if
// anything.
func (v *vetter) kustomization(f *file, dir string) (*kustomization, error) {
	if k, ok := v.read[dir]; ok && k.file == f.path {
		return k, k.bad
	}
	k, err := v.tree.readKustomization(f)
	if err != nil {
		return nil, err
	}
	v.read[dir] = k
	k.bad = v.vetKustomization(k, dir)
	if v.tree.broken != nil {
		return nil, v.tree.broken
	}
	return k, k.bad
}

func (v *vetter) vetKustomization(k *kustomization, dir string) error {
	var bad faults
	if v.pluginFolders[dir] {
		bad.add(k.resourcesOnly())
	}
	bad.add(k.helm())
	bad.add(k.literals())
	for _, r := range references(&k.Kustomization) {
		if v.pluginFolders[dir] {
			r.use |= usePlugin
		}
		bad.add(v.refer(k, dir, r))
	}
	for _, list := range []struct {
		field   string
		entries []string
	}{{"generators", k.Generators}, {"transformers", k.Transformers}, {"validators", k.Validators}} {
		for _, e := range list.entries {
			bad.add(v.plugin(k, dir, list.field, e))
		}
	}
	for _, p := range k.inline() {
		bad.add(v.inline(k, dir, p))
	}
	v.ownRules = v.ownRules || len(k.OpenAPI) > 0
	return bad.join()
}

// helm refuses Helm charts: kustomize runs the program helm for them, which fetches charts.
func (k *kustomization) helm() error {
	for i, n := range []int{len(k.HelmCharts), len(k.HelmChartInflationGenerator)} {
		if n > 0 {
			field := []string{"helmCharts", "helmChartInflationGenerator"}[i]
			return fault(k.file, k.line(field, ""), "run helm template, and commit what it writes", "%s: Helm charts are not rendered", field)
		}
	}
	return nil
}

// literals refuses literals of generators that are not key=value, without showing them: kustomize would.
func (k *kustomization) literals() error {
	var bad faults
	check := func(field string, literals []string) {
		for _, l := range literals {
			if i := strings.Index(l, "="); i <= 0 {
				bad.add(fault(k.file, k.line(field, l), "", "%s: a literal is not key=value", field))
			}
		}
	}
	for _, g := range k.ConfigMapGenerator {
		check("configMapGenerator", g.LiteralSources)
	}
	for _, g := range k.SecretGenerator {
		check("secretGenerator", g.LiteralSources)
	}
	return bad.join()
}

// resourcesOnly refuses a kustomization that makes the configurations of plugins out of others. What such a build comes to is known
// only once kustomize has done it, and then it acts on it at once, so it could not be examined.
func (k *kustomization) resourcesOnly() error {
	for i := 0; i < len(k.doc.root.Content); i += 2 {
		switch key := k.doc.root.Content[i]; strings.ToLower(key.Value) {
		case "apiversion", "kind", "metadata", "resources", "bases":
		default:
			return fault(k.file, k.doc.line(key), "write the configurations out",
				"%s: a kustomization that lists generators, transformers or validators may have nothing but resources", key.Value)
		}
	}
	return nil
}

// text is YAML that is written within a kustomization.
type text struct {
	field, value string
	orPath       bool // it may also be a path
}

// inline lists the patches that are written in the kustomization itself.
func (k *kustomization) inline() []text {
	var all []text
	for _, p := range k.Patches {
		all = append(all, text{"patches", p.Patch, false})
	}
	for _, p := range old(&k.Kustomization).json6902Patches {
		all = append(all, text{"patchesJson6902", p.Patch, false})
	}
	for _, p := range old(&k.Kustomization).mergePatches {
		all = append(all, text{"patchesStrategicMerge", string(p), true})
	}
	return all
}

// inline examines a patch that is written in the kustomization, or the path of one.
func (v *vetter) inline(k *kustomization, dir string, p text) error {
	docs, err := v.parseInline(k, p)
	if p.orPath {
		// Only a mapping is a patch. kustomize tries both, so what might be a path to something remote must not look like one either.
		if remote(p.value) || err == nil && !anyMapping(docs) {
			return v.refer(k, dir, reference{p.field, p.value, aFile, usePatch})
		}
	}
	return err
}

// parseInline parses YAML that is written in a scalar of the kustomization, with the lines of the file.
func (v *vetter) parseInline(k *kustomization, p text) ([]document, error) {
	before := 0
	if n := findScalar(k.doc.root, p.value); n != nil && p.value != "" {
		before = k.doc.line(n) - 1
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			before++
		}
	}
	docs, err := parse(k.file, []byte(p.value), v.tree.limits, false)
	for i := range docs {
		docs[i].before += before
	}
	for _, e := range Errors(err) {
		e.Line += before
		if e.Hint == "" {
			e.Hint = "it is in the text under " + p.field
		}
	}
	return docs, err
}

func anyMapping(docs []document) bool {
	for _, d := range docs {
		if d.root.Kind == yaml.MappingNode {
			return true
		}
	}
	return false
}
