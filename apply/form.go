package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// Kinds that are treated as what they are.
var (
	kindNamespace          = schema.GroupKind{Kind: "Namespace"}
	kindConfigMap          = schema.GroupKind{Kind: "ConfigMap"}
	kindSecret             = schema.GroupKind{Kind: "Secret"}
	kindClaim              = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	kindDefinition         = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	kindDeployment         = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	kindPod                = schema.GroupKind{Kind: "Pod"}
	kindRoleBinding        = schema.GroupKind{Group: groupRBAC, Kind: "RoleBinding"}
	kindClusterRoleBinding = schema.GroupKind{Group: groupRBAC, Kind: "ClusterRoleBinding"}
	kindMutating           = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
	kindValidating         = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
)

func isDefinition(id render.ID) bool {
	return id.GroupKind() == kindDefinition || id.GroupKind() == kindNamespace
}

func isWebhook(id render.ID) bool {
	return id.GroupKind() == kindMutating || id.GroupKind() == kindValidating
}

// rootCertificate says why such a ConfigMap is nobody's but the cluster's.
const rootCertificate = "is made by the cluster itself in every namespace, and no pod starts without it"

// isRootCertificate is true for the ConfigMaps that istiod (istio-ca-root-cert) and Kubernetes (kube-root-ca.crt) make in every namespace. A copy may have come into
// Git with an export; to fight over it, or to delete it when Git drops it, would keep new pods of the whole namespace from starting.
func isRootCertificate(id render.ID) bool {
	return id.GroupKind() == kindConfigMap && (id.Name == "istio-ca-root-cert" || id.Name == "kube-root-ca.crt")
}

// form is an object as it is sent to the API server. That of a wanted object is made when somebody looks at it, which nobody does while
// it lives as it is wanted. A nil one stands for nothing.
type form struct {
	of       *render.Content // nil for one that was made otherwise
	unit     string
	resource resource
	gist     *gist // nil where it was not asked for

	once sync.Once
	made *unstructured.Unstructured
}

// get gives the object; nil for none. It belongs to the form.
func (f *form) get() *unstructured.Unstructured {
	if f == nil {
		return nil
	}
	f.once.Do(func() {
		if f.of != nil {
			f.made, _ = formOf(f.unit, f.of.Unstructured(), f.resource) // who made the form has seen that it can be
		}
	})
	return f.made
}

// formed is an object that somebody has made.
func formed(u *unstructured.Unstructured) *form {
	if u == nil {
		return nil
	}
	return &form{made: u}
}

// gist is what is asked of every form in every pass. It is noted of the object that the form is made of.
type gist struct {
	unit               string
	status, namespaced bool // of the resource
	hash               string
	disabled           bool // by ReconcileAnnotation
	controlPlane       bool
}

// gistOf a wanted object's form. keepGists keeps it.
func gistOf(unit string, o *render.Content, r resource) (*gist, error) {
	if g, ok := o.Noted().(*gist); ok && g.unit == unit && g.status == r.Status && g.namespaced == r.Namespaced {
		return g, nil
	}
	u, err := formOf(unit, o.Unstructured(), r)
	if err != nil {
		return nil, err
	}
	hash, err := hashOf(u)
	if err != nil {
		return nil, err
	}
	return &gist{
		unit: unit, status: r.Status, namespaced: r.Namespaced, hash: hash,
		disabled: u.GetAnnotations()[ReconcileAnnotation] == "disabled", controlPlane: isPartOfIstiod(render.IDOf(u), u),
	}, nil
}

// keepGists notes what was found out for the first time, in one piece of memory for all.
func keepGists(all []wanted) {
	var fresh []int
	for i, w := range all {
		if w.form.of.Noted() != w.form.gist {
			fresh = append(fresh, i)
		}
	}
	gists, texts := make([]gist, len(fresh)), make([]*string, len(fresh))
	for n, i := range fresh {
		gists[n] = *all[i].form.gist
		texts[n] = &gists[n].hash
	}
	render.Gather(texts)
	for n, i := range fresh {
		w := &all[i]
		w.form.gist, w.hash = &gists[n], gists[n].hash
		w.form.of.Note(w.form.gist)
	}
}

// formOf gives what is sent to the API server for a wanted object: a copy with our label, without what only a server may
// write, and with what a server would not take back as it was written.
func formOf(unit string, o *unstructured.Unstructured, r resource) (*unstructured.Unstructured, error) {
	form := o.DeepCopy()
	// An object that was exported with kubectl carries these; with them an apply would be bound to a dead resourceVersion.
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(form.Object, "metadata", field)
	}
	if r.Status {
		unstructured.RemoveNestedField(form.Object, "status")
	}
	if !r.Namespaced {
		// A kustomization's namespace lands on kinds that kustomize does not know to be of the cluster.
		unstructured.RemoveNestedField(form.Object, "metadata", "namespace")
	}
	if r.GroupKind() == kindSecret {
		if err := errors.Join(encodeStringData(form), checkData(form)); err != nil {
			return nil, err
		}
	}
	if err := unstructured.SetNestedField(form.Object, unit, "metadata", "labels", PartOfLabel); err != nil {
		return nil, fmt.Errorf("read metadata.labels: %w", err)
	}
	return form, nil
}

// encodeStringData moves stringData to data: the field is write-only, so an apply that owns it never finds it again.
func encodeStringData(form *unstructured.Unstructured) error {
	plain, found, err := unstructured.NestedMap(form.Object, "stringData")
	if err != nil || !found {
		return wrapField("stringData", err)
	}
	data, _, err := unstructured.NestedMap(form.Object, "data")
	if err != nil {
		return wrapField("data", err)
	}
	if data == nil {
		data = make(map[string]any)
	}
	for key, value := range plain {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("stringData.%s is no string; quote it", key)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	unstructured.RemoveNestedField(form.Object, "stringData")
	return unstructured.SetNestedMap(form.Object, data, "data")
}

// checkData finds what the server would refuse in words that hold the value, which then could not be shown.
func checkData(form *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedMap(form.Object, "data")
	if err != nil {
		return wrapField("data", err)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, ok := data[key].(string)
		if ok {
			_, err = base64.StdEncoding.DecodeString(text)
		}
		if !ok && data[key] != nil || err != nil {
			return fmt.Errorf("data.%s is no base64 text; write plain text under stringData", key)
		}
	}
	return nil
}

// wrapField names the field only: the error of a type mismatch would print the value.
func wrapField(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s is no map of strings", field)
}

// hashOf a form: two equal ones apply the same.
func hashOf(form *unstructured.Unstructured) (string, error) {
	canonical, err := json.Marshal(form.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16]), nil
}

// adjust gives the form as it is applied over what lives, which may be less than Git says: what others have to write there
// is left to them. Istiod puts the caBundle into its webhooks and arms the validating one (failurePolicy Fail) once it serves; its charts
// render Ignore. To own the one would empty it, to write the other would disarm it. full is nil where only the metadata is known.
func adjust(w wanted, meta metav1.Object, full *unstructured.Unstructured) *unstructured.Unstructured {
	form := w.form.get().DeepCopy()
	switch {
	case isWebhook(w.id):
		adjustWebhooks(form, meta, full)
	case w.id.GroupKind() == kindDefinition:
		path := []string{"spec", "conversion", "webhook", "clientConfig"}
		config, found, _ := unstructured.NestedMap(form.Object, path...)
		if found && !keepsBundle(form, meta, config, "spec", "conversion", "webhook", "clientConfig", "caBundle") {
			unstructured.RemoveNestedField(form.Object, append(path, "caBundle")...)
		}
	}
	if full != nil {
		leaveTo(form, full, w.leave)
	}
	if ignoresDrift(form, meta) && w.id.GroupKind() != kindSecret {
		// A hash of a Secret would let those guess who may read metadata alone; for these memory must do.
		_ = unstructured.SetNestedField(form.Object, w.hash, "metadata", "annotations", AppliedAnnotation)
	}
	return form
}

func adjustWebhooks(form *unstructured.Unstructured, meta metav1.Object, full *unstructured.Unstructured) {
	hooks, _, _ := unstructured.NestedSlice(form.Object, "webhooks")
	armed := armedHooks(full)
	for _, h := range hooks {
		hook, ok := h.(map[string]any)
		if !ok {
			continue
		}
		name, _ := hook["name"].(string)
		config, ok := hook["clientConfig"].(map[string]any)
		if hook["failurePolicy"] == "Ignore" && armed[name] &&
			(servedByIstiod(config) || !ownedByUs(meta, "webhooks", key("name", name), "failurePolicy")) {
			delete(hook, "failurePolicy")
		}
		if !ok {
			continue
		}
		path := []any{"webhooks", key("name", name), "clientConfig", "caBundle"}
		if !keepsBundle(form, meta, config, path...) {
			delete(config, "caBundle")
		}
		if bundle := liveBundle(full, name); config["caBundle"] == nil && servedByIstiod(config) && bundle != "" && ownedByUs(meta, path...) {
			// We wrote it once. To say nothing of it now would remove it, and nobody could call the webhook until istiod notices. With its next
			// certificate it becomes istiod's.
			config["caBundle"] = bundle
		}
	}
	if hooks != nil {
		_ = unstructured.SetNestedSlice(form.Object, hooks, "webhooks")
	}
}

// armedHooks are the names of live webhooks that fail closed.
func armedHooks(full *unstructured.Unstructured) map[string]bool {
	armed := make(map[string]bool)
	if full == nil {
		return armed
	}
	hooks, _, _ := unstructured.NestedSlice(full.Object, "webhooks")
	for _, h := range hooks {
		if hook, ok := h.(map[string]any); ok && hook["failurePolicy"] == "Fail" {
			name, _ := hook["name"].(string)
			armed[name] = true
		}
	}
	return armed
}

// liveBundle is the caBundle of a live webhook.
func liveBundle(full *unstructured.Unstructured, name string) string {
	if full == nil {
		return ""
	}
	hooks, _, _ := unstructured.NestedSlice(full.Object, "webhooks")
	for _, h := range hooks {
		if hook, ok := h.(map[string]any); ok && hook["name"] == name {
			bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
			return bundle
		}
	}
	return ""
}

// keepsBundle says whether a caBundle in Git is meant: it is a certificate, and nobody else puts one there.
func keepsBundle(form *unstructured.Unstructured, meta metav1.Object, config map[string]any, path ...any) bool {
	bundle, _ := config["caBundle"].(string)
	if !isCertificate(bundle) {
		return false
	}
	if servedByIstiod(config) {
		return false
	}
	for annotation := range form.GetAnnotations() {
		if strings.HasPrefix(annotation, "cert-manager.io/inject-") {
			return false
		}
	}
	return meta == nil || !ownedByOther(meta.GetManagedFields(), path...)
}

// servedByIstiod is true for istiod and its revisions (istiod-1-31).
func servedByIstiod(config map[string]any) bool {
	name, _, _ := unstructured.NestedString(config, "service", "name")
	return strings.HasPrefix(name, "istiod")
}

func isCertificate(bundle string) bool {
	decoded, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(decoded)
	return block != nil && block.Type == "CERTIFICATE"
}

// ignoresDrift is true when Git or the live object says so.
func ignoresDrift(want, live metav1.Object) bool {
	return annotated(want, live, DriftAnnotation, "ignore")
}

// annotated is true when either object has the annotation with this value. live may be nil.
func annotated(want, live metav1.Object, annotation, value string) bool {
	if want != nil && want.GetAnnotations()[annotation] == value {
		return true
	}
	return live != nil && live.GetAnnotations()[annotation] == value
}
