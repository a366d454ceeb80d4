package check

import (
	"cmp"
	"slices"

	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindIndex finds what Istio says of a kind.
type kindIndex map[schema.GroupKind]resource.Schema

// istioKinds are the kinds that istiod reads from custom resources of Istio's own groups.
func istioKinds() kindIndex {
	index := kindIndex{}
	for _, s := range collections.Pilot.All() {
		index[schema.GroupKind{Group: s.Group(), Kind: s.Kind()}] = s
	}
	return index
}

// find the schema of a kind in a version that is served, or nil.
func (x kindIndex) find(gvk schema.GroupVersionKind) resource.Schema {
	s := x[gvk.GroupKind()]
	if s == nil || !slices.Contains(s.GroupVersionAliasKinds(), resource.FromKubernetesGVK(&gvk)) {
		return nil
	}
	return s
}

// versions that are served of a kind, the one to write first.
func versions(s resource.Schema) []string {
	served := []string{s.Version()}
	for _, gvk := range s.GroupVersionAliasKinds() {
		if !slices.Contains(served, gvk.Version) {
			served = append(served, gvk.Version)
		}
	}
	return served
}

// hasGroup says whether the group is one of Istio's.
func (x kindIndex) hasGroup(group string) bool {
	for gk := range x {
		if gk.Group == group {
			return true
		}
	}
	return false
}

// ofKind finds the schema of the kind in any group of Istio's.
func (x kindIndex) ofKind(kind string) resource.Schema {
	for _, gk := range x.sorted() {
		if gk.Kind == kind {
			return x[gk]
		}
	}
	return nil
}

// sorted lists the kinds by name.
func (x kindIndex) sorted() []schema.GroupKind {
	var list []schema.GroupKind
	for gk := range x {
		list = append(list, gk)
	}
	slices.SortFunc(list, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group))
	})
	return list
}

// names of the kinds, sorted.
func (x kindIndex) names() []string {
	var names []string
	for _, gk := range x.sorted() {
		names = append(names, gk.Kind)
	}
	return names
}
