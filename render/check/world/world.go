// Package world holds the objects of a mesh at one moment, in the form that Istio's libraries read.
//
// A [World] is made of what a commit wants and, where a cluster was read, of what lives there: the set lies over the cluster, an object of both
// counts as the set has it, and what the commit is about to prune is left out. So a rule that looks for a host, a Secret or a gateway finds
// it wherever it will be once the commit is applied. The world before the commit is what lives alone.
//
// # What is not there and what is not known
//
// A world without a cluster is a part of a mesh, and one whose reader may not list a kind has a hole. [World.Knows] tells "there is no such
// object" from "nobody looked": a rule that finds something missing asks it before it says so.
//
// # Conversion
//
// Istio's analyzers and generators read config.Config, not YAML. An object is converted when somebody first asks, and once: the [Converter] remembers by
// the object's address for as long as the object lives. Sets share their objects from commit to commit, so what did not change is
// not converted again. A Converter is safe for concurrent use; a World is read-only once it was made.
package world

import (
	"cmp"
	"slices"
	"sync/atomic"

	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// Cluster is what lives in a cluster, as far as it was read.
type Cluster struct {
	// Objects of the kinds that the checks look at. They are read by everybody and changed by nobody.
	Objects []*unstructured.Unstructured
	// MetadataOnly names the kinds of which only metadata was read: their objects have no spec, no data and no status.
	MetadataOnly map[schema.GroupKind]bool
	// Unread says of a kind why it could not be listed, such as missing rights. A kind that the cluster does not serve has no objects and is not unread.
	Unread map[schema.GroupKind]string
	// Unit is the ApplySet id of the Mooring that the commit belongs to. Objects that carry it and that the set no longer has are pruned with
	// the commit. Empty when nothing is.
	Unit string
}

// The label that says which ApplySet an object belongs to (KEP-3659), and the annotation that keeps an object from being pruned.
const (
	partOfLabel     = "applyset.kubernetes.io/part-of"
	pruneAnnotation = "mooring.dev/prune"
)

// Object is one object of a world.
type Object struct {
	render.Object
	// ID of the object; [render.Object.ID] finds it out anew each time.
	ID render.ID
	// Schema is what Istio knows of the kind, be it Istio's own or Kubernetes'; nil for a kind or a version that it does not know.
	Schema resource.Schema
	// Foreign is true for what lives in the cluster and is not in the set: it may belong to somebody else.
	Foreign bool
	// MetadataOnly says that spec, data and status were not read.
	MetadataOnly bool

	converter *Converter
	// converted is what the converter said: asking it again takes longer than reading here.
	converted atomic.Pointer[config.Config]
}

// Config is the object as Istio's libraries read it, nil when it cannot be converted. It is shared: whoever wants to change it makes a DeepCopy.
func (o *Object) Config() *config.Config {
	if o.Schema == nil {
		return nil
	}
	if c := o.converted.Load(); c != nil {
		return c
	}
	c := o.converter.config(o.Unstructured(), o.Schema)
	o.converted.Store(c)
	return c
}

// World is the objects of a mesh at one moment.
type World struct {
	byID   map[render.ID]*Object
	byKind map[schema.GroupKind][]*Object
	// cluster is nil when no cluster was read.
	cluster *Cluster
}

// After is the world once the set is applied. The cluster may be nil: then the set is all there is.
func (c *Converter) After(set *render.Set, cluster *Cluster) *World {
	w := newWorld(cluster)
	for _, o := range set.Objects {
		if o.Content != nil {
			w.add(c.object(o, false))
		}
	}
	w.addLiving(c, func(u *unstructured.Unstructured) bool { return w.byID[render.IDOf(u)] == nil && !cluster.prunes(u) })
	w.sort()
	return w
}

// Before is the world as it lives; nil without a cluster.
func (c *Converter) Before(cluster *Cluster) *World {
	if cluster == nil {
		return nil
	}
	w := newWorld(cluster)
	w.addLiving(c, func(*unstructured.Unstructured) bool { return true })
	w.sort()
	return w
}

func newWorld(cluster *Cluster) *World {
	return &World{byID: map[render.ID]*Object{}, byKind: map[schema.GroupKind][]*Object{}, cluster: cluster}
}

func (w *World) addLiving(c *Converter, stays func(*unstructured.Unstructured) bool) {
	if w.cluster == nil {
		return
	}
	for _, u := range w.cluster.Objects {
		if stays(u) {
			o := c.object(render.Object{Content: render.ContentOf(u)}, true)
			o.MetadataOnly = w.cluster.MetadataOnly[o.ID.GroupKind()]
			w.add(o)
		}
	}
}

// prunes says whether an object that the set does not have goes with the commit. Namespaces and definitions never do.
func (c *Cluster) prunes(u *unstructured.Unstructured) bool {
	if c.Unit == "" || u.GetLabels()[partOfLabel] != c.Unit || u.GetAnnotations()[pruneAnnotation] == "disabled" {
		return false
	}
	return u.GetKind() != "Namespace" && u.GetKind() != "CustomResourceDefinition"
}

func (w *World) add(o *Object) {
	if w.byID[o.ID] != nil {
		return
	}
	w.byID[o.ID] = o
	gk := o.ID.GroupKind()
	w.byKind[gk] = append(w.byKind[gk], o)
}

func (w *World) sort() {
	for _, all := range w.byKind {
		slices.SortFunc(all, func(a, b *Object) int {
			return cmp.Or(cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
		})
	}
}

// Of lists the objects of a kind by namespace and name. The list is shared.
func (w *World) Of(group, kind string) []*Object {
	return w.byKind[schema.GroupKind{Group: group, Kind: kind}]
}

// Find an object; nil when this world does not have it.
func (w *World) Find(id render.ID) *Object {
	return w.byID[id]
}

// Kinds that this world has objects of, sorted.
func (w *World) Kinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk := range w.byKind {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// Live says whether a cluster was read.
func (w *World) Live() bool {
	return w.cluster != nil
}

// Knows says whether an object of the kind that this world does not have does not exist. With a cluster that is so unless the kind could not
// be listed. Without one it is so where the set has an object of the kind in the namespace: a set that defines Services of a namespace is taken to define all of
// them. For a kind without namespaces, namespace is empty.
func (w *World) Knows(group, kind, namespace string) bool {
	gk := schema.GroupKind{Group: group, Kind: kind}
	if w.cluster != nil {
		_, unread := w.cluster.Unread[gk]
		return !unread
	}
	return slices.ContainsFunc(w.byKind[gk], func(o *Object) bool { return o.ID.Namespace == namespace })
}

// Why says why a kind is not known, in words that go after "not checked:".
func (w *World) Why(group, kind string) string {
	gk := schema.GroupKind{Group: group, Kind: kind}
	if w.cluster == nil {
		return "no cluster was asked, and the files have no " + kind + " there"
	}
	return w.cluster.Unread[gk]
}
