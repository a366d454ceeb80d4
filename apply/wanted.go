package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// wanted is one object of the set on its way to a step.
type wanted struct {
	id       render.ID
	origin   render.Origin
	form     *form
	hash     string
	resource resource
	// definition is the CRD of the same set that defines the kind; the zero ID when there is none.
	definition render.ID
	// unserved is true when the version is not served until the definition is applied.
	unserved bool
	// leave are the fields that are left to others.
	leave []path
}

// remembered is the hash that tells a change of what Git says, or of what is left to others.
func (w wanted) remembered() string {
	if len(w.leave) == 0 {
		return w.hash
	}
	sum := sha256.New()
	_, _ = sum.Write([]byte(w.hash)) // never fails
	for _, p := range w.leave {
		_, _ = sum.Write([]byte(p.String() + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// defines is true for what others can only be in once it is there.
func (w wanted) defines() bool { return isDefinition(w.id) }

func (w wanted) fault(err error) *ObjectError {
	return &ObjectError{Op: "plan", ID: w.id, Origin: w.origin, Err: err}
}

// defined is a kind that a CRD of the set defines.
type defined struct {
	by       render.ID
	versions []resource
}

// wantedKinds are all that a set needs to be served.
func wantedKinds(set *render.Set) (versions []schema.GroupVersionKind, kinds []schema.GroupKind) {
	for _, o := range set.Objects {
		gvk := o.GroupVersionKind()
		versions = append(versions, gvk)
		kinds = append(kinds, gvk.GroupKind())
	}
	return versions, union(kinds, nil)
}

// resolve finds where each object of the set is served and gives it the form in which it is applied. Every object that cannot
// be is an error of its own, and the rest is resolved all the same, so that a user sees all faults at once.
func resolve(u Unit, set *render.Set, c *catalog) ([]wanted, []error) {
	definitions := definedKinds(set)
	seen := make(map[render.ID]render.Origin)
	var all []wanted
	var faults []error
	for _, o := range set.Objects {
		w, err := resolveOne(u, o, c, definitions)
		if err == nil {
			if first, twice := seen[w.id]; twice {
				err = fmt.Errorf("is written twice, first in %s; keep one of them", first)
			}
			seen[w.id] = o.Origin
		}
		if err != nil {
			faults = append(faults, &ObjectError{Op: "plan", ID: o.ID(), Origin: o.Origin, Err: err})
			continue
		}
		all = append(all, w)
	}
	keepGists(all)
	return all, faults
}

func resolveOne(u Unit, o render.Object, c *catalog, definitions map[schema.GroupKind]defined) (wanted, error) {
	gvk := o.GroupVersionKind()
	if o.GetName() == "" {
		return wanted{}, errors.New("metadata.name is missing; Git must name each object (generateName cannot be kept)")
	}
	w := wanted{origin: o.Origin}
	def, inSet := definitions[gvk.GroupKind()]
	if inSet {
		w.definition = def.by
	}
	var served bool
	if w.resource, served = c.version(gvk); !served {
		i := slices.IndexFunc(def.versions, func(r resource) bool { return r.Version == gvk.Version })
		if i < 0 {
			return wanted{}, c.missing(gvk)
		}
		w.resource, w.unserved = def.versions[i], true
	}
	if w.resource.Namespaced && o.GetNamespace() == "" {
		return wanted{}, fmt.Errorf("metadata.namespace is missing; a %s lives in a namespace (write it, or set namespace: in the kustomization)", gvk.Kind)
	}
	g, err := gistOf(u.ID, o.Content, w.resource)
	if err != nil {
		return wanted{}, err
	}
	w.form, w.hash = &form{of: o.Content, unit: u.ID, resource: w.resource, gist: g}, g.hash
	if w.id = o.ID(); !w.resource.Namespaced {
		w.id.Namespace = ""
	}
	return w, nil
}

// definedKinds are the kinds that the set's own CRDs define.
func definedKinds(set *render.Set) map[schema.GroupKind]defined {
	found := make(map[schema.GroupKind]defined)
	for _, o := range set.Objects {
		if o.GroupVersionKind().GroupKind() != kindDefinition {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Unstructured().Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Unstructured().Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(o.Unstructured().Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(o.Unstructured().Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(o.Unstructured().Object, "spec", "versions")
		def := defined{by: o.ID()}
		for _, v := range versions {
			version, ok := v.(map[string]any)
			if !ok || version["served"] == false {
				continue
			}
			name, _ := version["name"].(string)
			_, status, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
			def.versions = append(def.versions, resource{
				Group: group, Version: name, Resource: plural, Kind: kind, Namespaced: scope == "Namespaced", Status: status,
			})
		}
		found[schema.GroupKind{Group: group, Kind: kind}] = def
	}
	return found
}
