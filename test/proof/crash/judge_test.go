package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/proof/witness"
)

func kinds() []witness.Kind {
	var all []witness.Kind
	for gk, gvr := range gvrs() {
		all = append(all, witness.Kind{GroupVersionResource: gvr, Kind: gk.Kind})
	}
	return all
}

// widgets are the custom resources of a site's own definition.
func widgets(s *site) witness.Kind {
	return witness.Kind{
		GroupVersionResource: schema.GroupVersionResource{Group: s.ns + ".example.com", Version: "v1", Resource: "widgets"}, Kind: "Widget",
	}
}

// followWidgets shows the witness the custom resources of the run, when there are any yet.
func (r *run) followWidgets() {
	r.Helper()
	_, err := r.listKind(r.home, widgets(r.home))
	if err != nil || r.followed {
		return
	}
	if err := r.witness.Follow(r.Context(), widgets(r.home)); err != nil {
		r.Fatal(err)
	}
	r.followed = true
}

func (r *run) listKind(s *site, kind witness.Kind) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind))
	if err := r.Client().List(r.Context(), list); err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		if of(s, idOf(&list.Items[i])) {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

// list gives all objects of a site, but for what Kubernetes itself puts into a namespace.
func (r *run) list(s *site) []*unstructured.Unstructured {
	r.Helper()
	var all []*unstructured.Unstructured
	for _, kind := range append(kinds(), widgets(s)) {
		found, err := r.listKind(s, kind)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetName() == "kube-root-ca.crt" || o.GetKind() == "ServiceAccount" && o.GetName() == "default"
	})
}

// untracked says which objects Mooring made and nobody would find again: they lack the label, or their kind is not in the Mooring's book.
func (r *run) untracked() (faults []string) {
	r.Helper()
	books := map[string][]string{}
	for i, part := range r.home.parts() {
		m, err := r.Mooring(r.Context(), r.home.keys[i])
		if err != nil {
			r.Fatal(err)
		}
		books[part] = strings.Split(m.Annotations["applyset.kubernetes.io/contains-group-kinds"], ",")
	}
	for _, o := range r.list(r.home) {
		id := idOf(o)
		if !witness.Ours(o) || r.isBystander(id) {
			continue
		}
		book, ok := books[o.GetLabels()[apply.PartOfLabel]]
		if !ok {
			faults = append(faults, fmt.Sprintf("untracked: %s was applied by Mooring and is labelled %q", id, o.GetLabels()[apply.PartOfLabel]))
		} else if gk := id.GroupKind().String(); !slices.Contains(book, gk) {
			faults = append(faults, fmt.Sprintf("untracked: %s lives, and %s is not in its Mooring's book: %v", id, gk, book))
		}
	}
	return faults
}

// judge gives everything that is not as it must be at the end of a run.
func (r *run) judge() []string {
	r.Helper()
	faults := r.untracked()
	faults = append(faults, r.leftovers()...)
	faults = append(faults, r.wronglyDeleted()...)
	faults = append(faults, r.disturbed()...)
	return append(faults, r.unlikeClean()...)
}

// leftovers are objects that Mooring made and that the last commit does not have. What is kept for a Mooring that had not decided yet goes by itself, with one
// more pass of who keeps it: that is waited for, and nobody asks for it.
func (r *run) leftovers() []string {
	r.Helper()
	wanted := r.phases[len(r.phases)-1].wanted
	ever := map[string]bool{} // UIDs that were Mooring's at any time
	for _, e := range r.witness.Events(r.here) {
		if e.Ours {
			ever[string(e.UID)] = true
		}
	}
	var faults []string
	_ = poll.Until(within(r.T, r.patience), "what is not wanted is gone", func() error {
		faults = nil
		for _, o := range r.list(r.home) {
			id := idOf(o)
			if _, ok := wanted[id]; ok || r.isBystander(id) || !ever[string(o.GetUID())] && !witness.Ours(o) {
				continue
			}
			faults = append(faults, fmt.Sprintf("left over: %s was made by Mooring, and the last commit does not have it", id))
		}
		if len(faults) > 0 {
			return errors.New(faults[0])
		}
		return nil
	})
	return faults
}

// wronglyDeleted are deletions of objects that the newest commit had at that moment.
func (r *run) wronglyDeleted() (faults []string) {
	for _, e := range witness.Deletions(r.witness.Events(r.here)) {
		if r.isBystander(e.ID) {
			faults = append(faults, fmt.Sprintf("wrongly deleted: %s: it is none of Mooring's", e))
		}
		if definition(e.ID) && !r.confirmed {
			faults = append(faults, fmt.Sprintf("wrongly deleted: %s: nobody gave a word for it", e))
		}
		first, last := r.phaseOf(e.After+1), r.phaseOf(e.Version)
		if first == nil || last == nil {
			continue
		}
		if o := last.wanted[e.ID]; o != nil && first.wanted[e.ID] != nil && o.GetAnnotations()[apply.ForceAnnotation] == "" {
			faults = append(faults, fmt.Sprintf("wrongly deleted %s: %s: the newest commit has it", last.name, e))
		}
		if e.Version <= r.phases[0].from {
			faults = append(faults, fmt.Sprintf("wrongly deleted while the first commit was put into force: %s", e))
		}
	}
	return faults
}

// phaseOf a revision; nil before the second commit.
func (r *run) phaseOf(version uint64) *phase {
	for i, p := range slices.Backward(r.phases) {
		if version > p.from {
			return &r.phases[i]
		}
	}
	return nil
}

// disturbed are bystanders that are gone, or were written to.
func (r *run) disturbed() (faults []string) {
	r.Helper()
	now := map[render.ID]string{}
	for _, o := range r.list(r.home) {
		now[idOf(o)] = standing(o)
	}
	for id, was := range r.bystanders {
		if now[id] != was {
			faults = append(faults, fmt.Sprintf("disturbed: %s is none of Mooring's; it was %s and is %q", id, was, now[id]))
		}
	}
	return faults
}

func standing(o client.Object) string {
	return fmt.Sprintf("uid %s at resourceVersion %s", o.GetUID(), o.GetResourceVersion())
}

// unlikeClean compares what lives with what a clean apply of the same commit made in another namespace.
func (r *run) unlikeClean() (faults []string) {
	r.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, o := range r.list(r.clean) {
		want[r.normal(o, r.clean, idOf(o).String())] = r.normal(o, r.clean, "")
	}
	for _, o := range r.list(r.home) {
		if !r.isBystander(idOf(o)) && o.GetDeletionTimestamp() == nil {
			got[r.normal(o, r.home, idOf(o).String())] = r.normal(o, r.home, "")
		}
	}
	if n := len(r.phases[len(r.phases)-1].wanted); len(want) != n {
		faults = append(faults, fmt.Sprintf("the clean apply made %d objects of %d", len(want), n))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		faults = append(faults, "the end state is not that of a clean apply (-clean +crashed):\n"+diff)
	}
	return faults
}

// normal writes an object, or the given text about it, without what differs between any two clusters: names that the API server gives, times, counters, the
// status, and which version of a kind it was written in.
func (r *run) normal(o *unstructured.Unstructured, s *site, text string) string {
	r.Helper()
	if text == "" {
		o = o.DeepCopy()
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
			unstructured.RemoveNestedField(o.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(o.Object, "status")
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(o.Object, "spec", field)
		}
		fields := map[string]any{}
		for _, entry := range o.GetManagedFields() {
			if entry.Subresource != "" || entry.FieldsV1 == nil {
				continue
			}
			var owned any
			if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
				r.Fatal(err)
			}
			fields[fmt.Sprintf("%s %s", entry.Manager, entry.Operation)] = owned
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		written, err := yaml.Marshal(map[string]any{"object": o.Object, "owners": fields})
		if err != nil {
			r.Fatal(err)
		}
		text = string(written)
	}
	names := []string{s.ns, "NS"}
	for i, part := range s.parts() {
		names = append(names, part, "PART-"+folders[i])
	}
	return strings.NewReplacer(names...).Replace(text)
}

// addBystanders makes objects that are none of the Mooring's, but look a little like it.
func (r *run) addBystanders() {
	r.Helper()
	add := func(manager client.FieldOwner, kind, name string, labels map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		if kind == "ValidatingWebhookConfiguration" {
			o.SetAPIVersion("admissionregistration.k8s.io/v1")
		} else {
			o.SetNamespace(r.home.ns)
		}
		o.SetName(name)
		o.SetLabels(labels)
		if err := r.Client().Apply(r.Context(), client.ApplyConfigurationFromUnstructured(o), manager); err != nil {
			r.Fatal(err)
		}
		r.bystanders[idOf(o)] = standing(o)
		return o
	}
	add("somebody", "ConfigMap", "somebodys", nil)
	add("somebody", "ConfigMap", "copied", map[string]string{apply.PartOfLabel: r.home.parts()[0]})
	add(apply.FieldManager, "ConfigMap", "anothers", map[string]string{apply.PartOfLabel: "applyset-another-v1"})
	add("istiod", "ConfigMap", "istio-ca-root-cert", nil)
	add("istioctl", "ValidatingWebhookConfiguration", r.home.ns+"-tag", map[string]string{"istio.io/tag": "default"})
}
