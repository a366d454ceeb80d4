package analysis_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/analysis"
	"github.com/mooring-dev/mooring/render/check/world"
)

func TestMain(m *testing.M) {
	// The library starts these when it is imported; no run adds one.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// objects of a YAML text.
func objects(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		js, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(js); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		all = append(all, u)
	}
	return all
}

func set(objects ...*unstructured.Unstructured) *render.Set {
	s := &render.Set{}
	for _, u := range objects {
		s.Objects = append(s.Objects, render.Object{Content: render.ContentOf(u)})
	}
	return s
}

// offline is the world of files alone.
func offline(t testing.TB, files string) *world.World {
	t.Helper()
	return world.NewConverter().After(set(objects(t, files)...), nil)
}

// live is the world of files over what lives, of whose Pods and Secrets metadata alone is read.
func live(t testing.TB, files, living string) *world.World {
	t.Helper()
	c := &world.Cluster{MetadataOnly: map[schema.GroupKind]bool{{Kind: "Pod"}: true, {Kind: "Secret"}: true}}
	if living != "" {
		c.Objects = objects(t, living)
	}
	for _, u := range c.Objects {
		if u.GetKind() == "Pod" || u.GetKind() == "Secret" {
			for field := range u.Object {
				if field != "apiVersion" && field != "kind" && field != "metadata" {
					delete(u.Object, field)
				}
			}
		}
	}
	return world.NewConverter().After(set(objects(t, files)...), c)
}

// say runs the analyzers, and gives a line for each message and each unknown.
func say(t testing.TB, w *world.World) string {
	t.Helper()
	result, err := analysis.Run(t.Context(), w, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return text(result)
}

func text(result *analysis.Result) string {
	var b strings.Builder
	for _, m := range result.Messages {
		foreign, name := "", ""
		if m.Object != nil {
			name = m.Object.ID.String()
			if m.Object.Foreign {
				foreign = " foreign"
			}
		}
		fmt.Fprintf(&b, "%s %s %s%s %s: %s\n", m.Level, m.Code, name, foreign, m.Field, m.Text)
	}
	for _, u := range result.Unknown {
		fmt.Fprintf(&b, "unknown %s %s: %s\n", u.Code, u.About, u.Why)
	}
	return b.String()
}

func service(namespace, name, more string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s}, spec: {selector: {app: %s}, ports: [{name: http, port: 80}%s]}}", name, namespace, name, more)
}

// route is a VirtualService to one destination.
func route(namespace, name, destination string) string {
	return fmt.Sprintf("{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: %s, namespace: %s}, spec: {hosts: [%s], http: [{route: [{destination: %s}]}]}}", name, namespace, name, destination)
}

func pod(namespace, name, labels string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, labels: %s, annotations: {sidecar.istio.io/status: "{}"}}}`, name, namespace, labels)
}

func deployment(namespace, name, labels string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {selector: {matchLabels: %s}, template: {metadata: {labels: %s}, spec: {containers: [{name: app, image: app}]}}}}", name, namespace, labels, labels)
}

func join(docs ...string) string {
	return strings.Join(docs, "\n---\n")
}

// story is a world and what is said of it.
type story struct {
	name  string
	world func(testing.TB) *world.World
	// want are the lines, all of them or none; a line may leave off its end.
	want []string
}

func files(docs ...string) func(testing.TB) *world.World {
	return func(t testing.TB) *world.World { return offline(t, join(docs...)) }
}

func over(files string, living ...string) func(testing.TB) *world.World {
	return func(t testing.TB) *world.World { return live(t, files, join(living...)) }
}

func run(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			got := strings.Split(strings.TrimSuffix(say(t, s.world(t)), "\n"), "\n")
			if len(got) == 1 && got[0] == "" {
				got = nil
			}
			if len(got) != len(s.want) {
				t.Fatalf("%d lines, want %d:\n%s", len(got), len(s.want), strings.Join(got, "\n"))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], s.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], s.want[i])
				}
			}
		})
	}
}
