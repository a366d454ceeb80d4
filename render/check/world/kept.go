package world

import (
	"runtime"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kept remembers what was found out about objects that never change, for as long as they live: it does not keep them alive. The zero
// value is ready, and safe for concurrent use.
type Kept[V any] struct {
	mu     sync.Mutex
	values map[weak.Pointer[unstructured.Unstructured]]V
}

// Of is what find said of the object when it was first asked. Two that ask for the same object at the same time may both find out.
func (k *Kept[V]) Of(u *unstructured.Unstructured, find func() V) V {
	key := weak.Make(u)
	k.mu.Lock()
	v, known := k.values[key]
	k.mu.Unlock()
	if known {
		return v
	}
	v = find()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil {
		k.values = map[weak.Pointer[unstructured.Unstructured]]V{}
	}
	if _, known := k.values[key]; !known {
		k.values[key] = v
		runtime.AddCleanup(u, k.forget, key)
	}
	return v
}

// Len is the number of objects that something is remembered of.
func (k *Kept[V]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.values)
}

func (k *Kept[V]) forget(key weak.Pointer[unstructured.Unstructured]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.values, key)
}
