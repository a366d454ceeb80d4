package schema

import (
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fresh is a Library that shares nothing, so that a benchmark sees what the first object costs.
func Fresh() *Library {
	return &Library{versions: sync.OnceValues(readIstio)}
}

// Both says whether an object is plain, and what the API server's library says of its types.
func (l *Library) Both(o *unstructured.Unstructured) (bool, field.ErrorList, error) {
	versions, err := l.versions()
	if err != nil {
		return false, nil, err
	}
	v, err := versions[o.GroupVersionKind()]()
	if err != nil {
		return false, nil, err
	}
	return plain(v.structural, o.Object), validation.ValidateCustomResource(nil, o.Object, v.types), nil
}
