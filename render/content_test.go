package render_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mooring-dev/mooring/render"
)

func setOf(objects ...map[string]any) *render.Set {
	s := &render.Set{}
	for _, o := range objects {
		s.Objects = append(s.Objects, render.Object{Content: render.ContentOf(&unstructured.Unstructured{Object: o})})
	}
	return s
}

func named(name string, spec any) map[string]any {
	return map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"name": name, "namespace": "shop", "annotations": map[string]any{"a": "b"}, "labels": map[string]any{"c": "d"}}, "spec": spec,
	}
}

// What rests comes back as it was, to the type of each number.
func TestObjectsComeBackFromRest(t *testing.T) {
	deep := any("x")
	for range 9_000 {
		deep = map[string]any{"a": deep}
	}
	for name, spec := range map[string]any{
		"integers":      []any{int64(0), int64(1), int64(-1), int64(math.MaxInt64), int64(math.MinInt64)},
		"floats":        []any{1.0, 0.1, math.Copysign(0, -1), 1e300, math.SmallestNonzeroFloat64, 16777217.0},
		"nothing":       map[string]any{"null": nil, "map": map[string]any{}, "list": []any{}, "text": "", "no": false},
		"no map":        map[string]any{"map": map[string]any(nil), "list": []any(nil)},
		"texts":         []any{"é\u2028\x00", "2026-01-02T03:04:05Z", "true", "1", strings.Repeat("long ", 100_000)},
		"odd keys":      map[string]any{"": "", "a.b/c": int64(1), "\x00": "", "é": ""},
		"no UTF-8":      map[string]any{"text": "\xff\xfe"},
		"no UTF-8 key":  map[string]any{"\xff\xfe": "text"},
		"deep":          deep,
		"not a number":  math.NaN(),
		"infinite":      math.Inf(1),
		"no JSON value": []string{"of a type that JSON does not give"},
	} {
		t.Run(name, func(t *testing.T) {
			set := setOf(named("reviews", spec), named("ratings", spec))
			before := (&unstructured.Unstructured{Object: named("reviews", spec)}).Object
			o := set.Objects[0]
			id, version, digest := o.ID(), o.GetAPIVersion(), set.Digest()
			for range 2 { // the second time it is packed already
				set.Rest(false)
				if o.ID() != id || o.GetAPIVersion() != version || o.GroupVersionKind().Kind != "VirtualService" || o.GetNamespace() != "shop" || o.GetName() != "reviews" {
					t.Errorf("at rest it is called %s, %s", o.ID(), o.GetAPIVersion())
				}
				got := o.Unstructured().Object
				if !reflect.DeepEqual(got, before) && name != "not a number" {
					t.Errorf("comes back as %v", got)
				}
				if o.GetAnnotations()["a"] != "b" || o.GetLabels()["c"] != "d" || set.Digest() != digest {
					t.Errorf("annotations %v, labels %v, digest %s, want %s", o.GetAnnotations(), o.GetLabels(), set.Digest(), digest)
				}
			}
			odd := name == "not a number" || name == "infinite" || name == "no JSON value" || name == "no map"
			set.Rest(false)
			if o.Resting() == odd {
				t.Errorf("rests: %t", o.Resting())
			}
		})
	}
}

// TestRestLetsGo: who has the tree keeps it, who asks later gets another, and all who ask then have the same one.
func TestRestLetsGo(t *testing.T) {
	set := setOf(named("reviews", map[string]any{"hosts": []any{"reviews"}}))
	held := set.Objects[0].Unstructured()
	if set.Rest(false) <= 0 || !set.Objects[0].Resting() {
		t.Error("nothing was let go")
	}
	if set.Rest(false) != 0 {
		t.Error("what rests was let go again")
	}
	again := set.Objects[0].Unstructured()
	if again == held || again != set.Objects[0].Unstructured() || held.GetName() != "reviews" {
		t.Error("not one tree for all, or the one that was held")
	}
	var none *render.Set
	if none.Rest(false) != 0 || (&render.Set{Objects: []render.Object{{}}}).Rest(false) != 0 || (*render.Cache)(nil).Rest(false) != 0 {
		t.Error("nothing has something to let go")
	}
}

func TestRestWhileOthersRead(t *testing.T) {
	var objects []map[string]any
	for i := range 50 {
		objects = append(objects, named("reviews", map[string]any{"n": int64(i)}))
	}
	set := setOf(objects...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				for i, o := range set.Objects {
					if n, _, _ := unstructured.NestedInt64(o.Unstructured().Object, "spec", "n"); n != int64(i) {
						t.Errorf("object %d says %d", i, n)
					}
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				set.Rest(false)
			}
		})
	}
	wg.Wait()
}

// TestCacheRests: a Set is given again, and one file that changed is rendered, while all others rest.
func TestCacheRests(t *testing.T) {
	app := func(name, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\ndata: {k: " + value + "}\n"
	}
	for name, repo := range map[string]fstest.MapFS{
		"plain":     {"a.yaml": {Data: []byte(app("a", "one"))}, "b.yaml": {Data: []byte(app("b", "one"))}},
		"kustomize": {"kustomization.yaml": {Data: []byte("resources: [a.yaml, b.yaml]\n")}, "a.yaml": {Data: []byte(app("a", "one"))}, "b.yaml": {Data: []byte(app("b", "one"))}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := render.NewCache(1 << 20)
			r := &render.Renderer{Cache: cache}
			give := func(repo fstest.MapFS) *render.Set {
				set, err := r.Render(t.Context(), commit(repo), ".")
				if err != nil {
					t.Fatal(err)
				}
				return set
			}
			first := give(repo)
			digest := first.Digest()
			if cache.Rest(false) <= 0 || !first.Objects[0].Resting() {
				t.Error("nothing was let go")
			}
			if again := give(repo); again != first || !again.Objects[0].Resting() || !again.Objects[1].Resting() {
				t.Error("what serves again was not left to rest")
			}
			if first.Digest() != digest {
				t.Error("the digest is another one")
			}
			cache.Rest(false)
			next := give(with(repo, "b.yaml", app("b", "two")))
			// kustomize makes all of so small a folder anew.
			if next.Objects[0].Resting() != (name == "plain") || next.Objects[1].Resting() {
				t.Errorf("a, which is the same, rests: %t; b, which is not: %t", next.Objects[0].Resting(), next.Objects[1].Resting())
			}
			if data, _, _ := unstructured.NestedString(next.Objects[1].Unstructured().Object, "data", "k"); data != "two" {
				t.Errorf("b says %q", data)
			}
		})
	}
}

func FuzzRest(f *testing.F) {
	f.Add([]byte(`{"a": 1, "b": 1.0, "c": [null, {}, [], "x", true, 1e30, 18446744073709551615]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v map[string]any
		if utiljson.Unmarshal(text, &v) != nil {
			return
		}
		want, err := json.Marshal(v)
		if err != nil {
			return
		}
		set := setOf(v)
		before := set.Objects[0].Unstructured().DeepCopy()
		set.Rest(false)
		if !reflect.DeepEqual(set.Objects[0].Unstructured().Object, before.Object) {
			t.Fatalf("%s comes back as %v", text, set.Objects[0].Unstructured().Object)
		}
		if got, _ := json.Marshal(set.Objects[0].Unstructured().Object); !bytes.Equal(got, want) {
			t.Errorf("%s is written as %s", want, got)
		}
	})
}

// TestIdleObjectsRest: those that somebody asked for in this round stay, also when they are kept in two places.
func TestIdleObjectsRest(t *testing.T) {
	set := setOf(named("a", nil), named("b", nil))
	a, b := set.Objects[0].Content, set.Objects[1].Content
	twice := []*render.Content{a, b, a}
	if render.Rest(twice, true) != 0 || a.Resting() || b.Resting() {
		t.Error("what was just made rests")
	}
	render.NextRound()
	b.Unstructured()
	if render.Rest(twice, true) <= 0 || !a.Resting() || b.Resting() || twice[1] != b {
		t.Errorf("a rests: %t, b, which was asked for, rests: %t", a.Resting(), b.Resting())
	}
	a.Unstructured()
	if render.Rest(twice, true) != 0 || a.Resting() || b.Resting() {
		t.Error("what was asked for rests")
	}
	if render.Rest(twice, false) <= 0 || !a.Resting() || !b.Resting() {
		t.Error("they do not rest")
	}
}

func TestGather(t *testing.T) {
	a, b, c, empty := "one", "two", "one", ""
	render.Gather([]*string{&a, &b, &empty, &c})
	if a != "one" || b != "two" || c != "one" || empty != "" {
		t.Errorf("%q %q %q %q", a, b, c, empty)
	}
	if unsafe.StringData(a) != unsafe.StringData(c) || uintptr(unsafe.Pointer(unsafe.StringData(b))) != uintptr(unsafe.Pointer(unsafe.StringData(a)))+3 {
		t.Error("they are not in one piece")
	}
	render.Gather(nil)
}

func TestGatherIn(t *testing.T) {
	type inner struct{ Names []string }
	type outer struct {
		Name   string
		Inner  *inner
		Labels map[string]string
		Bytes  []byte
		Any    any
		hidden string
		*inner
	}
	fill := func() *outer {
		word := func(s string) string { return strings.Clone(s) }
		return &outer{
			Name: word("a name"), Inner: &inner{Names: []string{word("one"), "", word("two")}}, Labels: map[string]string{word("key"): word("value")},
			Bytes: []byte("bytes"), Any: word("any"), hidden: word("hidden"),
		}
	}
	got, want := fill(), fill()
	render.GatherIn(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v became %+v", want, got)
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(got.Name)))
	for _, s := range []string{got.Inner.Names[0], got.Inner.Names[2], got.Labels["key"]} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(s))); at < begin || at > begin+40 {
			t.Errorf("%s is elsewhere", s)
		}
	}
	render.GatherIn(&outer{})
}

func TestSetHas(t *testing.T) {
	object := func(kind, namespace, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}
	}
	set := setOf(object("ConfigMap", "", "c"), object("ConfigMap", "shop", "a"), object("ConfigMap", "shop", "b"), object("ConfigMap", "zoo", "a"), object("Namespace", "shop", "shop"))
	for id, want := range map[render.ID]bool{
		{Kind: "ConfigMap", Namespace: "shop", Name: "b"}:   true,
		{Kind: "ConfigMap", Namespace: "zoo", Name: "b"}:    false,
		{Kind: "ConfigMap", Name: "c"}:                      true,
		{Kind: "ConfigMap", Name: "b"}:                      true,
		{Kind: "ConfigMap", Name: "shop"}:                   false,
		{Kind: "Namespace", Name: "shop"}:                   true,
		{Kind: "Namespace", Namespace: "zoo", Name: "shop"}: false,
		{Kind: "Zebra", Name: "shop"}:                       false,
		{Group: "apps", Kind: "ConfigMap", Name: "b"}:       false,
	} {
		if got := set.Has(id); got != want {
			t.Errorf("%+v: %t", id, got)
		}
	}
	if (&render.Set{}).Has(render.ID{Kind: "ConfigMap"}) {
		t.Error("nothing has something")
	}
}
