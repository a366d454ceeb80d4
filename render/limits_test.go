package render_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mooring-dev/mooring/render"
)

func documents(n int, kind string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: %s\nmetadata: {name: n%d}\n", kind, i)
	}
	return b.String()
}

// chain makes n kustomizations of which each uses the next by the given resources.
func chain(n int, resources func(next string) string) fstest.MapFS {
	repo := files("kustomization.yaml", resources("b0"))
	for i := range n {
		repo[fmt.Sprintf("b%d/kustomization.yaml", i)] = &fstest.MapFile{Data: []byte(resources(fmt.Sprintf("../b%d", i+1)))}
	}
	repo[fmt.Sprintf("b%d/kustomization.yaml", n)] = &fstest.MapFile{Data: []byte("resources: [a.yaml]\n")}
	repo[fmt.Sprintf("b%d/a.yaml", n)] = &fstest.MapFile{Data: []byte(configMap)}
	return repo
}

// doubling makes n levels of kustomizations of which each uses the next one twice, under two names: 2 to the n objects.
func doubling(n int) fstest.MapFS {
	repo := files("kustomization.yaml", "resources: [l0]\n")
	for i := range n {
		for _, side := range []string{"x", "z"} {
			repo[fmt.Sprintf("l%d%s/kustomization.yaml", i, side)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../l%d]\nnamePrefix: %s-\n", i+1, side)}
		}
		repo[fmt.Sprintf("l%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../l%dx, ../l%dz]\n", i, i)}
	}
	repo[fmt.Sprintf("l%d/kustomization.yaml", n)] = &fstest.MapFile{Data: []byte("resources: [a.yaml]\n")}
	repo[fmt.Sprintf("l%d/a.yaml", n)] = &fstest.MapFile{Data: []byte(configMap)}
	return repo
}

func TestLimits(t *testing.T) {
	small := render.Limits{Files: 10, Bytes: 4000, FileBytes: 3000, Objects: 20, OutputBytes: 5000, Depth: 10}
	many := fstest.MapFS{}
	for i := range 11 {
		many[fmt.Sprintf("f%d.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n%d}\n", i)}
	}
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + strings.Repeat("x", 2500) + "}\n"
	multiplied := "resources: [a.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 1000) + "}\n"
	deepFolders := files(strings.Repeat("d/", 12)+"a.yaml", configMap)
	tests := map[string]struct {
		repo   fstest.MapFS
		limits render.Limits
		want   string
	}{
		"files":                   {many, small, "more than 10 files are read"},
		"files in kustomization":  {chain(9, func(n string) string { return "resources: [" + n + "]\n" }), small, "more than 10 files are read"},
		"file size":               {files("a.yaml", large+strings.Repeat("#", 500)), small, "a.yaml: the file has more than 3000 bytes"},
		"file size of data":       {files("kustomization.yaml", "configMapGenerator: [{name: x, files: [d]}]\n", "d", strings.Repeat("x", 3001)), small, "d: the file has more than 3000 bytes"},
		"bytes":                   {files("a.yaml", large, "b.yaml", large), small, "the files that are read have more than 4000 bytes together"},
		"objects":                 {files("a.yaml", documents(15, "ConfigMap"), "b.yaml", documents(15, "Secret")), small, "there are more than 20 objects"},
		"objects in one file":     {files("a.yaml", "apiVersion: v1\nkind: List\nitems:\n"+strings.Repeat("- {apiVersion: v1, kind: X, metadata: {name: x}}\n", 21)), small, "there are more than 20 objects"},
		"objects of generators":   {files("kustomization.yaml", "configMapGenerator:\n"+strings.Repeat("- {name: a}\n", 21)), small, "there are more than 20 objects"},
		"documents":               {files("a.yaml", strings.Repeat("---\n", 21)), small, "it has more than 20 documents"},
		"documents kustomize":     {files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", documents(21, "ConfigMap")), small, "it has more than 20 documents"},
		"output":                  {files("kustomization.yaml", multiplied, "a.yaml", documents(10, "ConfigMap")), small, "the objects have more than 5000 bytes together"},
		"depth":                   {files("a.yaml", configMap+"data: [[[[[[[[[[]]]]]]]]]]\n"), small, "it is nested deeper than 10 levels"},
		"depth of folders":        {deepFolders, small, "folders are nested deeper than 10 levels"},
		"100,000 documents":       {files("a.yaml", documents(100_000, "ConfigMap")), render.Limits{}, "it has more than 20000 documents"},
		"100,000 empty documents": {files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", strings.Repeat("---\n", 100_000)), render.Limits{}, "it has more than 20000 documents"},
		"long chain":              {chain(300, func(n string) string { return "resources: [" + n + "]\n" }), render.Limits{}, "more than 200 kustomizations lead to one another"},
		"doubling":                {doubling(40), render.Limits{}, "there are more than 20000 objects"},
		"doubling nothing": {func() fstest.MapFS {
			repo := doubling(40)
			repo["l40/kustomization.yaml"].Data = []byte("resources: []\n")
			return repo
		}(), render.Limits{}, "kustomizations are used more than 20000 times"},
		"long name": {files("kustomization.yaml", "resources: ["+strings.Repeat("x", 300)+"]\n"), render.Limits{}, "does not exist"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			set, err := (&render.Renderer{Limits: test.limits}).Render(t.Context(), test.repo, ".")
			if err == nil {
				t.Fatalf("it is rendered: %d objects", len(set.Objects))
			}
			if !strings.Contains(err.Error(), test.want) || len(render.Errors(err)) == 0 {
				t.Errorf("got  %v\nwant …%s…", err, test.want)
			}
			// All of these end before kustomize starts, or are small.
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestWithinLimits: what is just within the limits is rendered.
func TestWithinLimits(t *testing.T) {
	small := render.Limits{Files: 4, Bytes: 4000, FileBytes: 3000, Objects: 20, OutputBytes: 5000, Depth: 10}
	repo := chain(1, func(n string) string { return "resources: [" + n + "]\n" })
	repo["b1/a.yaml"].Data = []byte(documents(20, "ConfigMap"))
	set, err := (&render.Renderer{Limits: small}).Render(t.Context(), repo, ".")
	if err != nil || len(set.Objects) != 20 || len(set.Files) != 4 {
		t.Errorf("got %v, %v", set, err)
	}
}

// TestTimeout: a build that takes too long is left alone, with an error that says so, and others can go on.
func TestTimeout(t *testing.T) {
	// 1,500 objects take kustomize seconds.
	slow := files("kustomization.yaml", "namePrefix: a-\nresources: [a.yaml]\n", "a.yaml", documents(1500, "ConfigMap"))
	r := &render.Renderer{Limits: render.Limits{Timeout: 20 * time.Millisecond}}
	start := time.Now()
	_, err := r.Render(t.Context(), slow, ".")
	if err == nil || !strings.Contains(err.Error(), "the build takes longer than 20ms") {
		t.Fatalf("got %v", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error("the caller's time was not over")
	}
	quick := files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap)
	if _, err := new(render.Renderer).Render(t.Context(), quick, "."); err != nil {
		t.Errorf("another build: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
