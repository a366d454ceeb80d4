package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// What a renderer warned of is among the findings, at the place that it is about, and blocks nothing.
func TestWarningsOfTheRenderAreFindings(t *testing.T) {
	reviews := render.ID{Group: "mooring.dev", Kind: "AppConfiguration", Namespace: "apps", Name: "reviews"}
	found, err := check.Check(t.Context(), &render.Set{
		Objects: objects(t, "a.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours, namespace: apps, labels: {a: -}}\n")),
		Warnings: []render.Warning{
			{Object: reviews, Origin: render.Origin{File: "b.yaml", Line: 7}, Field: "spec.x", Text: "x is y today", Hint: "write y"},
			{Object: reviews, Origin: render.Origin{File: "a.yaml"}, Text: "it stands for nothing"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	want := []string{
		"a.yaml: warning MOOR014 AppConfiguration/apps/reviews: it stands for nothing; mooring render shows what becomes of it, mooring explain what its fields mean",
		"a.yaml:1: error MOOR011 ConfigMap/apps/colours: metadata.labels[a]: " + found[1].Message + "; " + found[1].Mend,
		"b.yaml:7: warning MOOR014 AppConfiguration/apps/reviews: spec.x: x is y today; write y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if check.Blocks(found[:1]) || check.Blocks(found[2:]) {
		t.Error("a warning blocks")
	}
}

// A fault in an object that nobody wrote names what was written.
func TestFindingsNameWhatTheObjectCameFrom(t *testing.T) {
	made := objects(t, "app.yaml", []byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: reviews, namespace: apps}\nspec: {host: [a]}\n"))
	made[0].From = render.ID{Group: "mooring.dev", Kind: "AppConfiguration", Namespace: "apps", Name: "reviews"}
	found, err := check.Check(t.Context(), &render.Set{Objects: made})
	if err != nil || len(found) == 0 {
		t.Fatalf("found %v, %v", found, err)
	}
	for _, f := range found {
		if f.Object != made[0].ID() || f.From != made[0].From {
			t.Errorf("the finding is about %v from %v", f.Object, f.From)
		}
		if want := "VirtualService/apps/reviews (from AppConfiguration/apps/reviews)"; f.Subject() != want {
			t.Errorf("its subject is %q, want %q", f.Subject(), want)
		}
		if want := "app.yaml:1: error " + f.Code + " VirtualService/apps/reviews (from AppConfiguration/apps/reviews): " + f.Text(); f.String() != want {
			t.Errorf("it is written\n%s\nwant\n%s", f, want)
		}
	}
}
