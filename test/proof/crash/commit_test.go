package crash_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

// commit is the content of a repository.
type commit struct {
	// files are name to YAML, in which $NS stands for the namespace of the run.
	files map[string]string
	// right are the files that lie in the folder of the second Mooring, where there is one.
	right map[string]bool
}

// draw writes one file, or nothing when the file is not in the commit.
type draw func(r *rand.Rand, name string) string

// drawn are the files of a commit, and how each comes about. Names are the same in every commit of a run, so that what one commit
// changes is what is drawn differently.
func drawn() map[string]draw {
	all := map[string]draw{
		"space":   drawSpace,
		"widgets": drawWidgets,
		"rights":  drawRights,
		"hook":    drawHook,
		"peers":   drawPeers,
		"policy":  drawPolicy,
		"lock":    drawLock,
	}
	for i := range 6 {
		all[fmt.Sprintf("settings-%d", i)] = drawSettings
	}
	for i := range 2 {
		all[fmt.Sprintf("secret-%d", i)] = drawSecret
		all[fmt.Sprintf("outside-%d", i)] = drawOutside
	}
	for i := range apps {
		all[fmt.Sprintf("app-%d", i)] = drawApp
	}
	return all
}

const apps = 3

// first is a commit out of nothing.
func first(r *rand.Rand) commit {
	c := commit{files: map[string]string{}, right: map[string]bool{}}
	for name, draw := range sorted(drawn()) {
		c.files[name] = draw(r, name)
	}
	return c
}

// next changes about half of the files of a commit. A definition that is there stays, unless definitions may go.
func (c commit) next(r *rand.Rand, definitionsGo bool) commit {
	n := commit{files: maps.Clone(c.files), right: maps.Clone(c.right)}
	for name, draw := range sorted(drawn()) {
		if r.IntN(2) == 0 {
			continue
		}
		text := draw(r, name)
		definition := name == "space" || name == "widgets"
		if text == "" && n.files[name] != "" && definition && !definitionsGo {
			continue
		}
		n.files[name] = text
	}
	return n
}

// moved is the commit with some of the files in the other folder: those that go to the right do not come back, because two Moorings that each wait for
// an object of the other would wait for ever.
func (c commit) moved(r *rand.Rand) commit {
	n := commit{files: c.files, right: maps.Clone(c.right)}
	for name := range sorted(drawn()) {
		if r.IntN(3) == 0 {
			n.right[name] = true
		}
	}
	return n
}

// objects that the commit stands for, in a namespace.
func (c commit) objects(ns string) (map[render.ID]*unstructured.Unstructured, error) {
	all := make(map[render.ID]*unstructured.Unstructured)
	for name, text := range c.contents() {
		for document := range strings.SplitSeq(strings.ReplaceAll(text, "$NS", ns), "---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				return nil, fmt.Errorf("parse %s: %w in:\n%s", name, err, document)
			}
			if o.Object != nil {
				all[idOf(o)] = o
			}
		}
	}
	return all, nil
}

func idOf(o *unstructured.Unstructured) render.ID {
	gvk := o.GroupVersionKind()
	return render.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// contents are the files of the repository by their paths. Neither folder is ever empty.
func (c commit) contents() map[string]string {
	all := map[string]string{}
	for _, folder := range folders {
		all[folder+"/mark.yaml"] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mark-%s, namespace: $NS}\n", folder)
	}
	for name, text := range c.files {
		if text != "" {
			all[c.folder(name)+"/"+name+".yaml"] = text
		}
	}
	return all
}

// folders of a repository, and the names of their Moorings. A run with one Mooring has files in the first alone.
var folders = []string{"left", "right"}

func (c commit) folder(name string) string {
	if c.right[name] {
		return folders[1]
	}
	return folders[0]
}

// sorted gives the draws in an order that does not depend on chance.
func sorted(all map[string]draw) func(yield func(string, draw) bool) {
	return func(yield func(string, draw) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

// odds is true n times of ten.
func odds(r *rand.Rand, n int) bool { return r.IntN(10) < n }

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// some gives at least one of them, in their order.
func some[T any](r *rand.Rand, all ...T) []T {
	for {
		var kept []T
		for _, x := range all {
			if r.IntN(2) == 0 {
				kept = append(kept, x)
			}
		}
		if len(kept) > 0 {
			return kept
		}
	}
}

func drawSettings(r *rand.Rand, name string) string {
	if odds(r, 3) {
		return ""
	}
	if odds(r, 2) {
		name += "-new" // renamed
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: $NS\n", name)
	if odds(r, 3) {
		fmt.Fprintf(&b, "  labels: {tier: t%d}\n  annotations: {note: n%d}\n", r.IntN(2), r.IntN(2))
	}
	b.WriteString("data:\n")
	for _, key := range some(r, "a", "b", "c") {
		fmt.Fprintf(&b, "  %s: \"%d\"\n", key, r.IntN(3))
	}
	return b.String()
}

// drawLock is a ConfigMap that cannot change and asks to be replaced.
func drawLock(r *rand.Rand, name string) string {
	if odds(r, 5) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: $NS, annotations: {mooring.dev/force: enabled}}
immutable: true
data: {key: "%d"}
`, name, r.IntN(3))
}

func drawSecret(r *rand.Rand, name string) string {
	if odds(r, 3) {
		return ""
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: $NS}\nstringData: {password: \"p%d\"}\n", name, r.IntN(3))
}

// version of Istio's networking API: a commit may write one object in another.
func version(r *rand.Rand) string { return pick(r, "v1", "v1", "v1beta1") }

// drawApp is a Service, its subsets and its route; subsets come and go together with the routes that use them.
func drawApp(r *rand.Rand, name string) string {
	if odds(r, 2) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {name: %[1]s, namespace: $NS}\nspec:\n  selector: {app: %[1]s}\n  ports:\n  - {name: http, port: 80}\n", name)
	if odds(r, 4) {
		b.WriteString("  - {name: http-admin, port: 81}\n")
	}
	subsets := some(r, "v1", "v2", "v3")
	fmt.Fprintf(&b, "---\napiVersion: networking.istio.io/%s\nkind: DestinationRule\nmetadata: {name: %[2]s, namespace: $NS}\nspec:\n  host: %[2]s.$NS.svc.cluster.local\n  subsets:\n", version(r), name)
	for _, s := range subsets {
		fmt.Fprintf(&b, "  - {name: %[1]s, labels: {version: %[1]s}}\n", s)
	}
	used := some(r, subsets...)
	fmt.Fprintf(&b, "---\napiVersion: networking.istio.io/%s\nkind: VirtualService\nmetadata: {name: %[2]s, namespace: $NS}\nspec:\n  hosts: [%[2]s.$NS.svc.cluster.local]\n  http:\n  - route:\n", version(r), name)
	left := 100
	for i, s := range used {
		weight := left
		if i < len(used)-1 {
			weight = 1 + r.IntN(left-len(used)+i)
		}
		left -= weight
		fmt.Fprintf(&b, "    - {destination: {host: %s.$NS.svc.cluster.local, port: {number: 80}, subset: %s}, weight: %d}\n", name, s, weight)
	}
	return b.String()
}

func drawOutside(r *rand.Rand, name string) string {
	if odds(r, 4) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: networking.istio.io/%s
kind: ServiceEntry
metadata: {name: %[2]s, namespace: $NS}
spec:
  hosts: [%[2]s-$NS.example.com]
  ports: [{number: %[3]d, name: https, protocol: TLS}]
  resolution: DNS
  location: MESH_EXTERNAL
`, version(r), name, 443+r.IntN(3))
}

func drawPeers(r *rand.Rand, _ string) string {
	if odds(r, 4) {
		return ""
	}
	return fmt.Sprintf("apiVersion: security.istio.io/%s\nkind: PeerAuthentication\nmetadata: {name: default, namespace: $NS}\nspec: {mtls: {mode: %s}}\n",
		version(r), pick(r, "PERMISSIVE", "STRICT"))
}

func drawPolicy(r *rand.Rand, _ string) string {
	if odds(r, 4) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: security.istio.io/%[1]s
kind: AuthorizationPolicy
metadata: {name: allow, namespace: $NS}
spec:
  rules: [{from: [{source: {namespaces: [$NS]}}], to: [{operation: {methods: [%[2]s]}}]}]
`, version(r), pick(r, "GET", "POST", "PUT"))
}

// drawSpace is a namespace and what is in it.
func drawSpace(r *rand.Rand, _ string) string {
	if odds(r, 5) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: $NS-more, labels: {team: t%d}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: $NS-more}
data: {key: "%d"}
`, r.IntN(2), r.IntN(3))
}

// drawWidgets is a CRD in one of two forms, and custom resources that use the one it has.
func drawWidgets(r *rand.Rand, _ string) string {
	if odds(r, 6) {
		return ""
	}
	extra, use := "", ""
	if odds(r, 5) {
		extra, use = ", size: {type: integer}", fmt.Sprintf(", size: %d", r.IntN(3))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$NS.example.com}
spec:
  group: $NS.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}%s}}}}}
`, extra)
	for _, name := range some(r, "one", "two", "three") {
		fmt.Fprintf(&b, "---\napiVersion: $NS.example.com/v1\nkind: Widget\nmetadata: {name: %s, namespace: $NS}\nspec: {color: c%d%s}\n", name, r.IntN(3), use)
	}
	return b.String()
}

func drawRights(r *rand.Rand, _ string) string {
	if odds(r, 4) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: $NS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: robot, namespace: $NS}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [%s]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot, namespace: $NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}
subjects: [{kind: ServiceAccount, name: robot, namespace: $NS}]
`, strings.Join(some(r, "get", "list", "watch"), ", "))
}

// drawHook is a webhook that nothing calls.
func drawHook(r *rand.Rand, _ string) string {
	if odds(r, 4) {
		return ""
	}
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $NS-hook}
webhooks:
- name: never.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: %s
  timeoutSeconds: %d
  clientConfig: {service: {name: nobody, namespace: $NS}}
  rules: [{apiGroups: [never.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
`, pick(r, "Ignore", "Fail"), 1+r.IntN(3))
}

// definition says whether an object is one that no commit may take away without a word.
func definition(id render.ID) bool {
	return id.Kind == "Namespace" && id.Group == "" || id.Kind == "CustomResourceDefinition"
}

// gvrs of the kinds that commits have, but for the widgets, whose definition is in the commit.
func gvrs() map[schema.GroupKind]schema.GroupVersionResource {
	resource := func(group, version, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
	}
	return map[schema.GroupKind]schema.GroupVersionResource{
		{Kind: "ConfigMap"}:      resource("", "v1", "configmaps"),
		{Kind: "Secret"}:         resource("", "v1", "secrets"),
		{Kind: "Service"}:        resource("", "v1", "services"),
		{Kind: "ServiceAccount"}: resource("", "v1", "serviceaccounts"),
		{Kind: "Namespace"}:      resource("", "v1", "namespaces"),
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              resource("rbac.authorization.k8s.io", "v1", "roles"),
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       resource("rbac.authorization.k8s.io", "v1", "rolebindings"),
		{Group: "networking.istio.io", Kind: "DestinationRule"}:                         resource("networking.istio.io", "v1", "destinationrules"),
		{Group: "networking.istio.io", Kind: "VirtualService"}:                          resource("networking.istio.io", "v1", "virtualservices"),
		{Group: "networking.istio.io", Kind: "ServiceEntry"}:                            resource("networking.istio.io", "v1", "serviceentries"),
		{Group: "security.istio.io", Kind: "PeerAuthentication"}:                        resource("security.istio.io", "v1", "peerauthentications"),
		{Group: "security.istio.io", Kind: "AuthorizationPolicy"}:                       resource("security.istio.io", "v1", "authorizationpolicies"),
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
	}
}
