package check_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// broken panics when the library writes it as JSON.
type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { panic("no JSON of this") }

func object(apiVersion, kind, name string, spec any) render.Object {
	return render.Object{
		Content: render.ContentOf(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": spec,
		}}),
		Origin: render.Origin{File: name + ".yaml", Line: 1},
	}
}

// A panic about one object is a finding about it, and the others are checked all the same.
func TestPanicIsAFinding(t *testing.T) {
	set := &render.Set{Objects: []render.Object{
		{Origin: render.Origin{File: "a.yaml", Line: 1}}, // no object at all
		object("networking.istio.io/v1alpha3", "EnvoyFilter", "b", map[string]any{
			"configPatches": []any{map[string]any{"patch": map[string]any{"value": map[string]any{"x": broken{}}}}},
		}),
		object("security.istio.io/v1", "PeerAuthentication", "c", map[string]any{"mood": "STRICT"}),
	}}
	found, err := check.Check(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.Origin.File+" "+f.Code)
	}
	want := []string{"a.yaml MOOR001", "b.yaml MOOR001", "c.yaml MOOR002"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v:\n%v", got, want, found)
	}
	if !check.Blocks(found[:1]) {
		t.Error("an object that could not be checked must block")
	}
}

// What strict reading lets through and the library does not is refused too.
func TestTheLibraryHasTheLastWord(t *testing.T) {
	set := &render.Set{Objects: []render.Object{object("networking.istio.io/v1", "DestinationRule", "a", map[string]any{
		"host": "web",
		// A duration to Go, and too long for the library's own type.
		"trafficPolicy": map[string]any{"outlierDetection": map[string]any{"interval": strings.Repeat("9", 30) + "h"}},
	})}}
	found, err := check.Check(t.Context(), set)
	if err != nil || !check.Blocks(found) {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestCheckStops(t *testing.T) {
	if _, err := check.Check(t.Context(), nil); err == nil {
		t.Error("no set is no success")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the agent stops")
	cancel(reason)
	set := &render.Set{Objects: []render.Object{object("v1", "ConfigMap", "a", nil)}}
	if found, err := check.Check(ctx, set); !errors.Is(err, reason) || found != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if found, err := check.Check(t.Context(), &render.Set{}); err != nil || len(found) != 0 {
		t.Errorf("an empty set: got %v, %v", found, err)
	}
}

// TestConcurrentChecks is run with the race detector: the same set, and sets with the same kinds, at the same time.
func TestConcurrentChecks(t *testing.T) {
	sets := archiveSets(t)
	want := make([][]check.Finding, len(sets))
	for i, set := range sets {
		var err error
		if want[i], err = check.Check(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		for i, set := range sets {
			wg.Go(func() {
				got, err := check.Check(t.Context(), set)
				if err != nil || !cmp.Equal(got, want[i]) {
					t.Errorf("set %d: other findings than alone: %v", i, err)
				}
			})
		}
	}
	wg.Wait()
}

// TestCheckLeavesTheSetAlone compares the objects before and after.
func TestCheckLeavesTheSetAlone(t *testing.T) {
	for i, set := range archiveSets(t) {
		var before []any
		for _, o := range set.Objects {
			before = append(before, o.Unstructured().DeepCopy().Object)
		}
		if _, err := check.Check(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		for j, o := range set.Objects {
			if !reflect.DeepEqual(before[j], any(o.Unstructured().Object)) {
				t.Errorf("set %d: %s was changed", i, o.ID())
			}
		}
	}
}

func archiveSets(t testing.TB) []*render.Set {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var sets []*render.Set
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := &render.Set{}
		for _, f := range archive.Files {
			if f.Name != "want" {
				set.Objects = append(set.Objects, objects(t, f.Name, f.Data)...)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// TestMetadataFields compares what is known of metadata with the API machinery's type.
func TestMetadataFields(t *testing.T) {
	meta := map[string]any{"name": "a", "namespace": "shop"}
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, ok := meta[name]; !ok {
			meta[name] = nil
		}
	}
	o := object("v1", "ConfigMap", "a", nil)
	o.Unstructured().Object["metadata"] = meta
	found, err := check.Check(t.Context(), &render.Set{Objects: []render.Object{o}})
	if err != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

// FuzzCheck looks for objects that bring the check or the library down, and for such as strict reading lets through
// although the library cannot read them. Both would be MOOR001.
func FuzzCheck(f *testing.F) {
	for _, set := range archiveSets(f) {
		for _, o := range set.Objects {
			data, err := yaml.Marshal(o.Unstructured().Object)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		js, err := yaml.YAMLToJSON(data)
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON(js) != nil {
			return
		}
		found, err := check.Check(t.Context(), &render.Set{Objects: []render.Object{{Content: render.ContentOf(u)}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range found {
			if finding.Code == "MOOR001" || strings.Contains(finding.String(), "\n") {
				t.Error(finding)
			}
		}
	})
}

// BenchmarkCheck gives the cost of a mesh of 1,000 objects, half of them routes and half rules.
func BenchmarkCheck(b *testing.B) {
	set := &render.Set{}
	for i := range 500 {
		name := fmt.Sprintf("app-%d", i)
		set.Objects = append(set.Objects,
			object("networking.istio.io/v1", "VirtualService", name, map[string]any{
				"hosts": []any{name},
				"http": []any{map[string]any{"route": []any{
					map[string]any{"destination": map[string]any{"host": name, "subset": "v1"}, "weight": int64(90)},
					map[string]any{"destination": map[string]any{"host": name, "subset": "v2"}, "weight": int64(10)},
				}}},
			}),
			object("networking.istio.io/v1", "DestinationRule", name, map[string]any{
				"host": name,
				"subsets": []any{
					map[string]any{"name": "v1", "labels": map[string]any{"version": "v1"}},
					map[string]any{"name": "v2", "labels": map[string]any{"version": "v2"}},
				},
			}))
	}
	for b.Loop() {
		if found, err := check.Check(b.Context(), set); err != nil || len(found) != 0 {
			b.Fatal(found, err)
		}
	}
}
