package render_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing/fstest"
)

// random makes repositories of kustomizations that do a bit of everything, and changes them.
type random struct {
	*rand.Rand
	repo  fstest.MapFS
	count int
	calm  bool               // hardly anything is broken, and nothing crosses objects
	wild  bool               // much is broken
	below map[string][]thing // the objects in and below a folder
	dir   string             // the folder that is being made
}

// thing is an object as it is written.
type thing struct{ kind, namespace, name string }

func newRandom(seed uint64) *random {
	r := &random{Rand: rand.New(rand.NewPCG(seed, 7)), repo: fstest.MapFS{}, below: map[string][]thing{}}
	r.wild = r.one(4)
	r.calm = !r.wild && !r.one(3)
	return r
}

// one is true once in n times.
func (r *random) one(n int) bool { return r.IntN(n) == 0 }

func pick[T any](r *random, list ...T) T { return list[r.IntN(len(list))] }

func (r *random) write(name, text string) { r.repo[name] = &fstest.MapFile{Data: []byte(text)} }

// tree makes an overlay over some bases, which may have bases in turn.
func (r *random) tree() {
	var bases []string
	for i := range 1 + r.IntN(3) {
		dir := fmt.Sprintf("base%d", i)
		var below []string
		if r.one(3) {
			r.folder(dir+"/inner", nil)
			below = append(below, "inner")
		}
		if !r.calm && i > 0 && r.one(4) {
			below = append(below, "../base0")
		}
		r.folder(dir, below)
		bases = append(bases, "../"+dir)
	}
	r.folder("top", bases)
}

// folder makes a kustomization with files of its own.
func (r *random) folder(dir string, resources []string) {
	r.dir = dir
	for _, base := range resources {
		r.below[dir] = append(r.below[dir], r.below[path.Join(dir, base)]...)
	}
	resources = slices.Clone(resources)
	for i := range r.IntN(4) + 1 {
		name := fmt.Sprintf("f%d.yaml", i)
		r.write(dir+"/"+name, r.documents(1+r.IntN(5)))
		resources = append(resources, pick(r, name, name, "./"+name))
	}
	r.Shuffle(len(resources), func(i, j int) { resources[i], resources[j] = resources[j], resources[i] })
	text := pick(r, "", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n") + "resources:\n"
	for _, name := range resources {
		text += "- " + name + "\n"
	}
	r.write(dir+"/kustomization.yaml", text+r.fields(dir))
}

// fields gives some of the fields of a kustomization.
func (r *random) fields(dir string) string {
	var b strings.Builder
	some := func(n int, format string, args ...any) {
		if r.one(n) {
			fmt.Fprintf(&b, format, args...)
		}
	}
	some(3, "namespace: %s\n", pick(r, "a", "b", "default", "prod"))
	some(4, "labels:\n- pairs: {team: %s}\n  %s\n", pick(r, "blue", "red"), pick(r, "includeSelectors: true", "includeTemplates: true", "fields: [{path: spec/labels, create: true}]"))
	some(5, "commonLabels: {owner: %s}\n", pick(r, "o", "p"))
	some(4, "commonAnnotations: {note: \"%d\"}\n", r.IntN(3))
	some(4, "images:\n- {name: nginx, newTag: \"%d\"}\n", r.IntN(3))
	if !r.calm || r.has("Deployment", "StatefulSet") {
		some(5, "replicas:\n- {name: %s, count: %d}\n", r.known("Deployment", "StatefulSet").name, r.IntN(5))
	}
	some(12, "sortOptions: {order: %s}\n", pick(r, "fifo", "legacy"))
	const never = 1 << 30
	crossing, metadata := 60, 60
	switch {
	case r.wild:
		crossing = 6
	case r.calm:
		crossing, metadata = never, never
	}
	some(metadata, "buildMetadata: [%s]\n", pick(r, "managedByLabel", "originAnnotations", "transformerAnnotations"))
	some(crossing, "namePrefix: p-\n")
	some(crossing, "nameSuffix: -s\n")
	some(crossing, "configMapGenerator:\n- {name: gen, literals: [a=%d]}\n", r.IntN(3))
	some(crossing, "replacements:\n- source: {kind: Service, name: %s}\n  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.x], options: {create: true}}]\n", r.known("Service").name)
	some(crossing, "vars:\n- {name: V, objref: {apiVersion: v1, kind: Service, name: %s}}\n", r.known("Service").name)
	if n := r.IntN(4); n > 0 && r.one(2) && (!r.calm || r.has(patched...)) {
		b.WriteString("patches:\n")
		for i := range n {
			b.WriteString(r.patch(dir, i))
		}
	}
	if r.one(8) && (!r.calm || r.has(patched...)) {
		fmt.Fprintf(&b, "patchesStrategicMerge:\n- |-\n%s", indent("  ", r.merge()))
	}
	some(10, "patchesJson6902:\n- target: {version: v1, kind: %s, name: %s}\n  patch: |-\n    - {op: add, path: /spec/x, value: %d}\n", pick(r, "Service", "ConfigMap"), r.known("Service").name, r.IntN(3))
	return b.String()
}

func indent(by, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}

var patched = []string{"Service", "Deployment", "VirtualService", "ServiceAccount", "RoleBinding"}

// has says whether an object of some kinds is in the folder that is being made or below it.
func (r *random) has(kinds ...string) bool {
	return slices.ContainsFunc(r.below[r.dir], func(o thing) bool { return slices.Contains(kinds, o.kind) })
}

// merge is a patch for one object, which is there most often.
func (r *random) merge() string {
	o := r.known(patched...)
	text := "apiVersion: " + versions[o.kind] + "\nkind: " + o.kind + "\nmetadata:\n  name: " + o.name + "\n"
	if o.namespace != "" {
		text += "  namespace: " + o.namespace + "\n"
	}
	if o.kind == "RoleBinding" && r.one(2) {
		return text + "subjects: [{kind: ServiceAccount, name: " + r.known("ServiceAccount").name + pick(r, "", ", namespace: a", ", namespace: default") + "}]\n"
	}
	return text + pick(r, "spec: {patched: true}\n", "spec: {ports: [{port: 81, name: y}]}\n", "  annotations: {patched: \"1\"}\n", "  labels: null\n",
		"  annotations: {$patch: replace, x: y}\n", pick(r, "$patch: delete\n", "spec: {more: true}\n"))
}

// known gives an object of one of some kinds in the folder that is being made or below it, or nearly one.
func (r *random) known(kinds ...string) thing {
	var all []thing
	for _, o := range r.below[r.dir] {
		if len(kinds) == 0 || slices.Contains(kinds, o.kind) {
			all = append(all, o)
		}
	}
	if len(all) == 0 {
		return thing{pick(r, kinds...), "", r.name()}
	}
	o := pick(r, all...)
	if !r.calm && r.one(20) {
		o.namespace = pick(r, "a", "b", "prod", "default")
	}
	return o
}

func sortedNames(repo fstest.MapFS) []string {
	var names []string
	for name := range repo {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// patch is one entry of patches, in place or in a file.
func (r *random) patch(dir string, n int) string {
	target := ""
	if r.one(2) {
		target = "  target:\n    " + pick(r, "kind: Deployment", "kind: Service\n    name: n.*", "labelSelector: app=blue", "kind: VirtualService\n    namespace: a",
			"name: "+r.known(kinds()...).name, "kind: Nothing", "group: networking.istio.io", "namespace: prod", "annotationSelector: note", "kind: RoleBinding|ServiceAccount") + "\n"
	}
	text := r.merge()
	if target != "" && r.one(2) {
		text = "- op: " + pick(r, "add\n  path: /metadata/annotations\n  value: {json: \"1\"}", "add\n  path: /spec\n  value: {a: b}", "add\n  path: /metadata/labels\n  value: {app: blue}",
			"copy\n  from: /metadata/name\n  path: /copied", "add\n  path: /subjects\n  value: [{kind: ServiceAccount, name: n3}]") + "\n"
		if r.wild {
			text = "- op: " + pick(r, "replace\n  path: /spec/hosts/0\n  value: h", "remove\n  path: /metadata/labels", "replace\n  path: /metadata/name\n  value: renamed",
				"move\n  from: /metadata/name\n  path: /moved", "replace\n  path: x/kind\n  value: Service", "test\n  path: /kind\n  value: Deployment") + "\n"
		}
	}
	if target == "" && r.one(4) {
		text += "---\n" + r.merge()
	}
	if r.wild && r.one(8) {
		text = pick(r, "", "a: [", "- {op: add}\n", "just text\n", "kind: X\n", "apiVersion: v1\nkind: List\nitems: []\n")
	}
	if r.wild && r.one(10) {
		target += "  options: {allowNameChange: true}\n"
	}
	if r.one(2) {
		name := fmt.Sprintf("patch%d.yaml", n)
		r.write(dir+"/"+name, text)
		return "- path: " + name + "\n" + target
	}
	return "- patch: |-\n" + indent("    ", text) + target
}

var versions = map[string]string{
	"ConfigMap": "v1", "Service": "v1", "ServiceAccount": "v1", "Namespace": "v1", "Secret": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1",
	"VirtualService": "networking.istio.io/v1", "DestinationRule": "networking.istio.io/v1", "PeerAuthentication": "security.istio.io/v1",
	"Role": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1", "RoleBinding": "rbac.authorization.k8s.io/v1",
	"ClusterRoleBinding": "rbac.authorization.k8s.io/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
	"HorizontalPodAutoscaler": "autoscaling/v2", "PersistentVolumeClaim": "v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1",
}

func kinds() []string {
	var all []string
	for kind := range versions {
		all = append(all, kind)
	}
	slices.Sort(all)
	return all
}

func (r *random) name() string { return fmt.Sprintf("n%d", r.IntN(6)) }

// documents makes a file of objects. Nearly all have names of their own.
func (r *random) documents(n int) string {
	var all []string
	for range n {
		all = append(all, r.object())
	}
	if r.one(15) {
		items := ""
		for _, o := range all {
			items += "- " + strings.TrimPrefix(indent("  ", o), "  ")
		}
		return "apiVersion: v1\nkind: List\nitems:\n" + items
	}
	separator := pick(r, "---\n", "---\n", "--- # next\n", "---\n# nothing\n---\n")
	if !r.calm && r.one(40) {
		separator = pick(r, "--- !!map\n", "--- null\n---\n", "---\n--- ~\n---\n")
	}
	return pick(r, "", "---\n", "# first\n") + strings.Join(all, separator) + pick(r, "", "", "---\n", "\n...\n")
}

// object makes one object.
func (r *random) object() string {
	kind := pick(r, kinds()...)
	if kind == "Namespace" && (r.calm || !r.one(5)) {
		kind = "VirtualService"
	}
	r.count++
	name := fmt.Sprintf("%s-%d", strings.ToLower(kind[:3]), r.count)
	if r.one(4) && kind != "Namespace" || kind == "ServiceAccount" || kind == "Service" {
		name = fmt.Sprintf("n%d", r.count)
	}
	if !r.calm && r.one(100) || r.wild && r.one(15) {
		name = r.name()
	}
	ns, labels, in := "", "", ""
	if r.one(3) {
		in = pick(r, "a", "b", "default")
		ns = ", namespace: " + in
	}
	r.below[r.dir] = append(r.below[r.dir], thing{kind, in, name})
	if r.one(3) {
		labels = ", labels: {app: " + pick(r, "blue", "red") + "}"
	}
	if r.one(30) && r.calm {
		labels += ", annotations: {config.kubernetes.io/local-config: \"true\"}"
	} else if !r.calm && r.one(30) {
		labels += pick(r, ", annotations: {config.kubernetes.io/local-config: \"true\"}", ", annotations: {a: b, on: \"off\"}", ", annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}",
			", annotations: {internal.config.kubernetes.io/refBy: x}")
	}
	head := "apiVersion: " + versions[kind] + "\nkind: " + kind + "\nmetadata: {name: " + name + ns + labels + "}\n"
	return head + r.body(kind)
}

func (r *random) body(kind string) string {
	some := func() string { return fmt.Sprintf("n%d", r.IntN(r.count+1)) } // perhaps the name of a Service or ServiceAccount
	switch kind {
	case "ConfigMap", "Secret":
		return pick(r, "data: {a: \"1\"}\n", "data:\n  text: |\n    first\n    ---x\n    last\n", "data: {on: yes, octal: 010, float: 1.50}\n", "")
	case "Service":
		return "spec: {ports: [{port: 80, name: x}], selector: {app: x}}\n"
	case "Deployment", "StatefulSet":
		return "spec: {template: {spec: {serviceAccountName: " + some() + ", containers: [{name: c, image: nginx, env: [{name: e, valueFrom: {configMapKeyRef: {name: " + some() + ", key: k}}}]}]}}}\n"
	case "VirtualService":
		return "spec:\n  hosts: [&h " + some() + "]\n  http: [{route: [{destination: {host: *h}}], timeout: " + pick(r, "1s", "1.5", "0x10", "on") + "}]\n"
	case "DestinationRule":
		return "spec: {host: " + some() + ", subsets: [{name: v1, labels: {version: v1}}]}\n"
	case "RoleBinding", "ClusterRoleBinding":
		subject := pick(r, "default", some(), some())
		return "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + pick(r, "Role", "ClusterRole") + ", name: " + some() + "}\nsubjects:\n- kind: ServiceAccount\n  name: " + subject +
			pick(r, "", "\n  namespace: a", "\n  namespace: default", "\n  namespace: other") + "\n"
	case "ValidatingWebhookConfiguration":
		return "webhooks:\n- name: w\n  clientConfig: {service: {name: " + some() + ", namespace: " + pick(r, "a", "default", "x") + "}}\n"
	case "Role", "ClusterRole":
		return "rules: [{resourceNames: [" + some() + "]}]\n"
	case "HorizontalPodAutoscaler":
		name := some()
		if !r.calm && r.one(4) {
			name = "{name: " + name + "}" // nonsense that kustomize follows
		}
		return "spec: {scaleTargetRef: {kind: Deployment, name: " + name + "}}\n"
	case "CustomResourceDefinition":
		return "spec: {group: example.com, conversion: {webhook: {clientConfig: {service: {name: s, namespace: x}}}}}\n"
	default:
		return "spec: {}\n"
	}
}

// edit changes something: most often one file, sometimes what is there at all.
func (r *random) edit() {
	names := sortedNames(r.repo)
	name := pick(r, names...)
	text := string(r.repo[name].Data)
	dir := name[:strings.LastIndex(name, "/")]
	lines := strings.SplitAfter(text, "\n")
	at := r.IntN(len(lines))
	switch r.IntN(9) {
	case 0, 1: // another value
		old := pick(r, "n1", "a", "x", "\"1\"", "v1", "prod", "80")
		r.write(name, strings.Replace(text, old, pick(r, "n2", "b", "\"2\"", "default", "81"), 1))
	case 2: // a line less
		r.write(name, strings.Join(slices.Delete(lines, at, at+1), ""))
	case 3: // a document more, in front of the others or after them
		if strings.Contains(name, "/f") {
			r.write(name, pick(r, r.object()+"---\n"+text, strings.TrimSuffix(text, "\n...\n")+"\n---\n"+r.object()))
		}
	case 4: // a file anew
		if strings.Contains(name, "/f") {
			r.write(name, r.documents(1+r.IntN(4)))
		}
	case 5: // a kustomization with a field more, or under another name
		k := dir + "/kustomization.yaml"
		if f := r.repo[k]; f != nil && r.one(3) {
			delete(r.repo, k)
			r.repo[dir+"/"+pick(r, "kustomization.yml", "Kustomization")] = f
		} else if f != nil {
			r.write(k, string(f.Data)+r.fields(dir))
		}
	case 6: // a name that was missing appears
		r.repo[dir+"/"+pick(r, "kustomization.yml", "Kustomization", "f9.yaml")] = &fstest.MapFile{Data: []byte("resources: []\n")}
	case 7: // something goes
		if r.one(2) {
			delete(r.repo, name)
		}
	case 8: // only a comment
		r.write(name, text+"\n# comment\n")
	}
}
