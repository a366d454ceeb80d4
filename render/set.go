package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is the complete, sorted, duplicate-free list of objects that a path of a commit stands for.
// It is read by everybody and changed by nobody after Render returned it: other Sets may share its objects, and a [Cache] may give it again. Whoever
// wants to change an object makes a copy.
type Set struct {
	// Objects in a deterministic order: by group, kind, namespace and name.
	Objects []Object
	// Files that were read to get there, each once, sorted by path.
	Files []File
	// Hollow are the files that were read for objects and hold none: empty, all comments, an empty list, a kustomization in between that lists nothing. They are
	// legal, and a file that was lost on its way into the repository looks just like them. Sorted.
	Hollow []string
	// Warnings of the expanders, in a deterministic order.
	Warnings []Warning
}

// Has says whether the set has an object. Where the ID is without a namespace, an object with one counts as well: a kustomization's namespace lands on kinds that
// kustomize does not know to be of the cluster. Nil has none.
func (s *Set) Has(id ID) bool {
	if s == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(s.Objects, id, func(o Object, id ID) int { return compare(o.ID(), id) })
	if found || id.Namespace != "" {
		return found
	}
	for _, o := range s.Objects[i:] { // no namespace comes first of all
		if o.ID().GroupKind() != id.GroupKind() {
			break
		}
		if o.GetName() == id.Name {
			return true
		}
	}
	return false
}

// Object is one wanted object and the file that it came from.
type Object struct {
	*Content
	Origin Origin
	// From is the object that this one was expanded from, such as an AppConfiguration; the zero ID when it was written as it is.
	From ID

	written *written // nil when it is not known
}

// ID names an object for as long as it lives. The version is not part of it: networking.istio.io/v1 and v1beta1
// of one VirtualService are the same object to the API server.
type ID struct {
	Group, Kind, Namespace, Name string
}

// Origin says where in the repository an object was written. The zero Origin means unknown.
type Origin struct {
	// File is relative to the repository's root, with forward slashes.
	File string
	// Line is where the object begins, counted from 1; 0 when it is not known.
	Line int
}

// File is one file that a render read.
type File struct {
	Path string
	// Hash is the Git blob id where the file system knows it, else the sha256 of the content.
	Hash string
}

// IDOf gives the ID of any object.
func IDOf(u *unstructured.Unstructured) ID {
	gvk := u.GroupVersionKind()
	return ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GroupKind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// String writes Kind/namespace/name, or Kind/name for what has no namespace.
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + "/" + id.Name
	}
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// String writes file:line, or the file alone when the line is not known.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}
