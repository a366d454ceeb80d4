package deletes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

// op is one step of a sequence: a commit, a pass, or what a user does. A sequence from which an op is taken away is a sequence still.
type op struct {
	verb verb
	// unit 0 or 1: whose folder a commit changes, or whose pass it is.
	unit int
	// object that a commit is about.
	object string
	// n is a value, or the write at which a pass breaks off.
	n int
}

type verb string

// Verbs of commits.
const (
	add     verb = "add"        // the object is in the folder from now on, with a value; the other folder may have it too
	change  verb = "change"     // it has another value, if it is there
	drop    verb = "drop"       // it is not
	rename  verb = "rename"     // it has another name from now on
	move    verb = "move"       // one commit takes it from the unit's folder to the other
	remake  verb = "apiVersion" // it is written in another version of its kind
	empty   verb = "empty"      // nothing is in the folder, until it is mended
	broken  verb = "break"      // the folder does not render, until it is mended
	invalid verb = "spoil"      // it has an object that the API server refuses, until it is mended
	mend    verb = "mend"       // it is as it was again
)

// Verbs of what comes beside.
const (
	pass     verb = "pass"     // plan and run, as the agent does
	cut      verb = "cut"      // a pass whose wire is cut at the n-th write, and a new agent
	together verb = "together" // a pass of both at the same time
	restart  verb = "restart"  // another agent, which remembers nothing
	copied   verb = "copy"     // a user copies a live object under another name, label and all
)

// Verbs of faults that are planted, to see whether the judges notice.
const (
	sabotage verb = "sabotage" // an object is deleted by hand
	strip    verb = "strip"    // it loses the label
	plant    verb = "plant"    // one is made under our name that no book knows of
)

func (o op) String() string {
	switch o.verb {
	case restart, together:
		return string(o.verb)
	case pass, empty, broken, invalid, mend:
		return fmt.Sprintf("%s %s", o.verb, names[o.unit])
	case cut:
		return fmt.Sprintf("%s the wire of %s at write %d", o.verb, names[o.unit], o.n)
	case move:
		return fmt.Sprintf("move %s from %s to %s", o.object, names[o.unit], names[1-o.unit])
	case copied, sabotage, strip, plant:
		return fmt.Sprintf("%s %s", o.verb, o.object)
	}
	return fmt.Sprintf("%s %s in %s (%d)", o.verb, o.object, names[o.unit], o.n)
}

// names of the two Moorings.
var names = [2]string{"left", "right"}

// sequence is what a test plays.
type sequence []op

func (s sequence) String() string {
	var b strings.Builder
	for i, o := range s {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, o)
	}
	return b.String()
}

// draw a sequence. It begins with objects on both sides, and with passes that apply them.
func draw(r *rand.Rand) sequence {
	var s sequence
	pool := pool(r.IntN(8) == 0)
	for _, object := range pool {
		if r.IntN(3) > 0 {
			s = append(s, op{verb: add, unit: r.IntN(2), object: object, n: r.IntN(3)})
		}
	}
	s = append(s, op{verb: pass}, op{verb: pass, unit: 1})
	for range 10 + r.IntN(20) {
		o := op{unit: r.IntN(2), object: pool[r.IntN(len(pool))], n: r.IntN(3)}
		switch n := r.IntN(100); {
		case n < 4:
			o.verb = add
		case n < 10:
			o.verb = change
		case n < 20:
			o.verb = drop
		case n < 28:
			o.verb = rename
		case n < 42:
			o.verb = move
		case n < 46:
			o.verb = remake
		case n < 48:
			o.verb = empty
		case n < 50:
			o.verb = broken
		case n < 52:
			o.verb = invalid
		case n < 60:
			o.verb = mend
		case n < 84:
			o.verb = pass
		case n < 89:
			o.verb, o.n = cut, 1+r.IntN(5)
		case n < 93:
			o.verb = together
		case n < 96:
			o.verb = restart
		default:
			o.verb = copied
		}
		s = append(s, o)
	}
	return s
}

// pool names the objects of a sequence, with the definition of a kind or without.
func pool(definition bool) []string {
	all := []string{
		"ConfigMap/a", "ConfigMap/b", "ConfigMap/c", "ConfigMap/d", "Secret/s",
		"VirtualService/v", "VirtualService/w", "DestinationRule/d", "ServiceEntry/e", "Gadget/g", "Namespace/more",
	}
	if definition {
		all = append(all, "CustomResourceDefinition/widgets")
	}
	return all
}

// commit is the newest state of the repository: a folder for each unit.
type commit struct {
	folders [2]folder
}

// folder of a commit.
type folder struct {
	objects map[string]form
	// state says that it is empty, broken or invalid at the moment, or none of these.
	state verb
}

// form of an object.
type form struct {
	value   int
	old     bool // written in v1beta1
	renamed bool
}

func (f folder) clone() folder {
	c := folder{objects: make(map[string]form, len(f.objects)), state: f.state}
	for name, form := range f.objects {
		c.objects[name] = form
	}
	return c
}

// then is the commit that an op makes out of this one.
func (c commit) then(o op) commit {
	next := commit{folders: [2]folder{c.folders[0].clone(), c.folders[1].clone()}}
	mine, other := &next.folders[o.unit], &next.folders[1-o.unit]
	was, has := mine.objects[o.object]
	switch o.verb {
	case add:
		was.value = o.n
		mine.objects[o.object] = was
	case drop:
		delete(mine.objects, o.object)
	case change, rename, remake:
		if has {
			mine.objects[o.object] = was.after(o)
		}
	case move:
		if has {
			delete(mine.objects, o.object)
			other.objects[o.object] = was
		}
	case empty, broken, invalid:
		mine.state = o.verb
	case mend:
		mine.state = ""
	}
	return next
}

// after is the form that an op makes of this one.
func (f form) after(o op) form {
	switch o.verb {
	case change:
		f.value = o.n
	case rename:
		f.renamed = !f.renamed
	case remake:
		f.old = !f.old
	}
	return f
}

// good says whether the folder is what somebody meant: one that renders, holds something, and holds nothing that the API server refuses.
func (f folder) good() bool { return f.state == "" && len(f.objects) > 0 }

// empty says whether the folder renders to nothing.
func (f folder) empty() bool { return f.state == empty || f.state == "" && len(f.objects) == 0 }

// set gives the objects of a folder as a render does. A broken one has none.
func (f folder) set(ns string) (*render.Set, error) {
	set := &render.Set{}
	if f.state == empty {
		return set, nil
	}
	if f.state == broken {
		return nil, fmt.Errorf("the folder does not render")
	}
	texts := []string{}
	for name, form := range f.objects {
		texts = append(texts, form.write(name))
	}
	if f.state == invalid {
		texts = append(texts, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: $NS}\n")
	}
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "$NS", ns)), &u.Object); err != nil {
			return nil, fmt.Errorf("parse %q: %w", text, err)
		}
		set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(u), Origin: render.Origin{File: "git.yaml", Line: 1}})
	}
	return set, nil
}

// write an object of the pool.
func (f form) write(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	if f.renamed && !definition(schema.GroupKind{Kind: kind}) {
		name += "-new"
	}
	version := "v1"
	if f.old {
		version = "v1beta1"
	}
	switch kind {
	case "ConfigMap":
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: $NS}\ndata: {value: \"%d\"}\n", name, f.value)
	case "Secret":
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: $NS}\nstringData: {value: \"%d\"}\n", name, f.value)
	case "VirtualService":
		return fmt.Sprintf("apiVersion: networking.istio.io/%s\nkind: VirtualService\nmetadata: {name: %[2]s, namespace: $NS}\nspec: {hosts: [%[2]s.example.com], http: [{timeout: %[3]ds, route: [{destination: {host: %[2]s.example.com}}]}]}\n",
			version, name, 1+f.value)
	case "DestinationRule":
		return fmt.Sprintf("apiVersion: networking.istio.io/%s\nkind: DestinationRule\nmetadata: {name: %[2]s, namespace: $NS}\nspec: {host: %[2]s.example.com, subsets: [{name: s%[3]d, labels: {v: s%[3]d}}]}\n",
			version, name, f.value)
	case "ServiceEntry":
		return fmt.Sprintf("apiVersion: networking.istio.io/%s\nkind: ServiceEntry\nmetadata: {name: %[2]s, namespace: $NS}\nspec: {hosts: [%[2]s.example.com], resolution: DNS, location: MESH_EXTERNAL, ports: [{number: %[3]d, name: https, protocol: TLS}]}\n",
			version, name, 443+f.value)
	case "Namespace":
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-%s, labels: {value: \"%d\"}}\n", name, f.value)
	case "Gadget":
		return fmt.Sprintf("apiVersion: proof.example.com/v1\nkind: Gadget\nmetadata: {name: %s, namespace: $NS}\nspec: {value: %d}\n", name, f.value)
	}
	return crd("$NS.example.com", "Widget", f.value)
}

// crd writes a definition.
func crd(group, kind string, value int) string {
	lower := strings.ToLower(kind)
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s, labels: {value: "%[4]d"}}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: %[2]ss, singular: %[2]s, kind: %[3]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`, group, lower, kind, value)
}

// definition says whether a kind is one whose objects nothing may delete without a word.
func definition(gk schema.GroupKind) bool {
	return gk.Kind == "Namespace" || gk.Kind == "CustomResourceDefinition"
}
