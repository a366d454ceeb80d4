package render

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// explain says in one sentence, with the file and the line, what kustomize says in a chain of wrapped texts that names the folders on the way
// and hides the file. kustomize's text stays in the chain of the error; it is not shown because it may quote patches, configurations
// and whole objects, and so what is in a Secret.
//
// Most faults never get here: vet.go finds them when the kustomization is read. The rules are for those that show only while
// kustomize works. A text that no rule knows is cut down to its innermost part.
func explain(v *vetter, err error) error {
	text := strings.ReplaceAll(strings.ReplaceAll(err.Error(), mount+"/", ""), mount, ".")
	text = strings.ReplaceAll(text, `\"`, `"`)
	x := &explainer{v: v, dir: v.root, text: text, cause: err}
	// The innermost kustomization is the one that was at work.
	if all := recursed.FindAllStringSubmatchIndex(text, -1); len(all) > 0 {
		last := all[len(all)-1]
		x.dir, x.text = text[last[2]:last[3]], text[last[1]:]
	}
	if x.k = v.read[x.dir]; x.k == nil {
		return &Error{File: x.dir, Err: x.say("%s", brief(x.text))}
	}
	for _, r := range rules() {
		if m := r.text.FindStringSubmatch(x.text); m != nil {
			return r.explain(x, m)
		}
	}
	return &Error{File: x.k.file, Err: x.say("%s", brief(x.text))}
}

var (
	recursed  = regexp.MustCompile(`recursed accumulation of path '([^']*)': `)
	configure = regexp.MustCompile("(?s)trouble configuring builtin \\w+ with config: `\\n.*?\\n`: ")
	wrapping  = regexp.MustCompile(`(?s)^.*(?:accumulation err='.*?'|recursed merging from path '[^']*'|accumulateDirectory|accumulating resources|accumulating components): `)
	revealing = regexp.MustCompile(`(?s)(\n|[[({]"|\{"|with config:| in object |for value |: node contents| \[patch:|, Patch=|JsonOp=|decoding [\[{]).*$`)
)

// brief gives the innermost part of one of kustomize's texts, without anything that quotes the content of an object.
func brief(text string) string {
	const most = 300
	text = configure.ReplaceAllString(wrapping.ReplaceAllString(text, ""), "")
	text = strings.NewReplacer(".[noGrp]", "", ".[noVer]", "", ".[noNs]", "", "/[noName]", "").Replace(text)
	text = strings.TrimSpace(revealing.ReplaceAllString(text, ""))
	text = strings.TrimRight(text, `'"`+"` :;,")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if text == "" {
		return "kustomize cannot build it"
	}
	return text
}

// explainer has what the rules need to know.
type explainer struct {
	v     *vetter
	dir   string         // the folder of the kustomization that was at work
	k     *kustomization // that kustomization
	text  string
	cause error
}

// say makes a text of ours an error that has kustomize's in its chain.
func (x *explainer) say(format string, args ...any) error {
	return &told{fmt.Sprintf(format, args...), x.cause}
}

// at makes an error at a value below a field of the kustomization.
func (x *explainer) at(field, value, hint, format string, args ...any) error {
	return &Error{File: x.k.file, Line: x.k.line(field, value), Hint: hint, Err: x.say(field+": "+format, args...)}
}

// inPatch finds what an error is about in a patch: its line, or 0.
type inPatch func(docs []document) int

// patch makes an error at the first patch of the kustomization that has what it is about, which may be a file of its own.
func (x *explainer) patch(find inPatch, hint, format string, args ...any) error {
	msg := x.say(format, args...)
	for _, p := range x.k.patchFiles() {
		f := x.v.tree.files[x.k.leadsTo(p.field, p.value)]
		if f == nil {
			continue
		}
		if docs, err := x.v.tree.parse(f); err == nil {
			if line := find(docs); line > 0 {
				return &Error{File: f.path, Line: line, Hint: hint, Err: msg}
			}
		}
	}
	name := "patches"
	for _, p := range x.k.inline() {
		if docs, err := x.v.parseInline(x.k, p); err == nil && p.value != "" {
			if line := find(docs); line > 0 {
				if n := findScalar(x.k.doc.root, p.value); n != nil && n.Style&yaml.LiteralStyle == 0 {
					line = x.k.doc.line(n) // the lines of the text are not those of the file
				}
				return &Error{File: x.k.file, Line: line, Hint: hint, Err: x.say(p.field+": %s", msg)}
			}
		}
		name = p.field
	}
	return x.at(name, "", hint, "%s", msg)
}

// thePatch finds a patch by its text.
func thePatch(is string) inPatch {
	return func(docs []document) int {
		var text strings.Builder
		for _, d := range docs {
			text.Write(d.text)
		}
		if len(docs) == 0 || strings.TrimSpace(text.String()) != strings.TrimSpace(is) {
			return 0
		}
		return docs[0].line(docs[0].root)
	}
}

// mergePatch finds a strategic merge patch for an object.
func mergePatch(i id) inPatch {
	return func(docs []document) int {
		for _, d := range docs {
			if scalar(d.root, "kind") == i.kind && scalar(field(d.root, "metadata"), "name") == i.name {
				return d.line(d.root)
			}
		}
		return 0
	}
}

// operationAt finds an operation of a JSON patch by its path, or else one that begins with it.
func operationAt(path string) inPatch {
	return func(docs []document) int {
		nearly := 0
		for _, d := range docs {
			if d.root.Kind != yaml.SequenceNode {
				continue
			}
			for _, op := range d.root.Content {
				switch at := scalar(op, "path"); {
				case at == path || scalar(op, "from") == path:
					return d.line(op)
				case strings.HasPrefix(at, path) && nearly == 0:
					nearly = d.line(op)
				}
			}
		}
		return nearly
	}
}

// patchFiles lists the patches that are files.
func (k *kustomization) patchFiles() []reference {
	var files []reference
	for _, r := range references(&k.Kustomization) {
		if r.field == "patches" || r.field == "patchesJson6902" {
			files = append(files, r)
		}
	}
	for _, p := range old(&k.Kustomization).mergePatches {
		files = append(files, reference{"patchesStrategicMerge", string(p), aFile, usePatch})
	}
	return files
}

// entry finds the entry of resources or components that leads to a folder, as it is written.
func (x *explainer) entry(folder string) (field, value string) {
	for _, r := range references(&x.k.Kustomization) {
		if r.as == aFile {
			continue
		}
		if real, err := x.v.tree.resolve(path.Join(x.dir, r.value)); err == nil && real == folder {
			return r.field, r.value
		}
	}
	return "resources", folder
}

// id is how kustomize names an object: Kind.version.group/name.namespace.
type id struct{ kind, namespace, name string }

func parseID(s string) id {
	s = strings.TrimRight(s, `":;,'`)
	gvk, name, _ := strings.Cut(s, "/")
	i := id{}
	i.kind, _, _ = strings.Cut(gvk, ".")
	dot := strings.LastIndex(name, ".")
	if dot < 0 {
		i.name = name
		return i
	}
	i.name, i.namespace = name[:dot], name[dot+1:]
	if i.namespace == "[noNs]" {
		i.namespace = ""
	}
	if i.name == "[noName]" {
		i.name = ""
	}
	return i
}

// String writes Kind/namespace/name, leaving out what is empty.
func (i id) String() string {
	s := i.kind
	if i.namespace != "" {
		s += "/" + i.namespace
	}
	if i.name != "" {
		s += "/" + i.name
	}
	return s
}

// generatorField gives the field that makes objects of a kind.
func generatorField(kind string) string {
	if kind == "Secret" {
		return "secretGenerator"
	}
	return "configMapGenerator"
}

// generator finds the generator that makes an object called name. Whether it makes a ConfigMap or a Secret is not always in the text.
func (x *explainer) generator(name string) string {
	has := func(args types.GeneratorArgs) bool { return args.Name == name }
	for _, g := range x.k.SecretGenerator {
		if has(g.GeneratorArgs) {
			return "secretGenerator"
		}
	}
	return "configMapGenerator"
}
