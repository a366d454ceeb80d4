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

// large is a unit of n objects that is divided.
func large(n int, fields string) fstest.MapFS {
	return files("kustomization.yaml", "resources: [a.yaml]\n"+fields, "a.yaml", documents(n, "ConfigMap"))
}

// TestDividedEndsWithTheTime: a divided build that is stopped is not done again undivided, which would take longer still.
func TestDividedEndsWithTheTime(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, r *render.Renderer) (context.Context, func(error) bool){
		"timeout": func(t *testing.T, r *render.Renderer) (context.Context, func(error) bool) {
			r.Limits.Timeout = 20 * time.Millisecond
			return t.Context(), func(err error) bool { return strings.Contains(err.Error(), "the build takes longer than 20ms") }
		},
		"context": func(t *testing.T, r *render.Renderer) (context.Context, func(error) bool) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, func(err error) bool { return errors.Is(err, context.Canceled) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := render.NewCache(1 << 24)
			r := &render.Renderer{Cache: c}
			ctx, is := stop(t, r)
			begun := time.Now()
			_, err := r.Render(ctx, large(3000, "namespace: a\n"), ".")
			if err == nil || !is(err) {
				t.Errorf("got %v", err)
			}
			if n := c.Counts(); n.Undivided > 0 || n.Sets > 0 {
				t.Errorf("%+v", n)
			}
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestDividedOutput: what comes out is counted while it comes, not when all of it is in memory.
func TestDividedOutput(t *testing.T) {
	c := render.NewCache(1 << 20)
	r := &render.Renderer{Cache: c, Limits: render.Limits{OutputBytes: 1 << 20}}
	_, err := r.Render(t.Context(), large(2000, "commonAnnotations: {a: "+strings.Repeat("x", 10_000)+"}\n"), ".")
	if err == nil || !strings.Contains(err.Error(), "the objects have more than 1 MiB together") || len(render.Errors(err)) != 1 {
		t.Errorf("got %v", err)
	}
	if n := c.Counts(); n.Undivided > 0 || n.Parts > 15 {
		t.Errorf("%+v", n)
	}
}

// TestLargeBombs: what is refused for small units is refused for large ones, before anything is built.
func TestLargeBombs(t *testing.T) {
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("  a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	circle := large(300, "")
	circle["kustomization.yaml"].Data = []byte("resources: [a.yaml, b]\n")
	circle["b/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [../c]\n")}
	circle["c/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [../b]\n")}
	links := large(300, "")
	links["kustomization.yaml"].Data = []byte("resources: [a.yaml, l/x.yaml]\n")
	links["l"] = &fstest.MapFile{Data: []byte("m"), Mode: 0o777 | 1<<27}
	links["m"] = &fstest.MapFile{Data: []byte("l"), Mode: 0o777 | 1<<27}
	for name, test := range map[string]struct {
		repo fstest.MapFS
		want string
	}{
		"aliases in a document": {files("kustomization.yaml", "resources: [a.yaml, b.yaml]\n", "a.yaml", documents(300, "ConfigMap"), "b.yaml", bomb), "b.yaml:"},
		"aliases in a patch":    {with(large(300, "patches: [{path: b.yaml}]\n"), "b.yaml", bomb), "b.yaml:"},
		"nesting in a patch":    {large(300, "patches:\n- target: {kind: ConfigMap}\n  patch: '[{op: add, path: /data/a, value: "+strings.Repeat("[", 300)+strings.Repeat("]", 300)+"}]'\n"), "nested deeper"},
		"bases in a circle":     {circle, "goes in a circle"},
		"links in a circle":     {links, "in a circle"},
		"100,000 documents":     {large(100_000, "namespace: a\n"), "it has more than 20000 documents"},
	} {
		t.Run(name, func(t *testing.T) {
			c := render.NewCache(1 << 24)
			begun := time.Now()
			_, err := (&render.Renderer{Cache: c}).Render(t.Context(), test.repo, ".")
			if err == nil || !strings.Contains(err.Error(), test.want) || len(render.Errors(err)) == 0 {
				t.Errorf("got %v", err)
			}
			if n := c.Counts(); n.Parts+n.Undivided > 0 {
				t.Errorf("%+v", n)
			}
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestLargeUnits: names by the hundred in other namespaces, bindings, and one patch for each object are divided all the same.
func TestLargeUnits(t *testing.T) {
	var docs, patches strings.Builder
	for i := range 100 {
		fmt.Fprintf(&docs, "---\napiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: default, namespace: ns-%d}\nspec: {mtls: {mode: STRICT}}\n", i)
		fmt.Fprintf(&docs, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa-%d, namespace: ns-%d}\n", i, i)
		fmt.Fprintf(&docs, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: rb-%d, namespace: ns-%d}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: sa-%d}]\n", i, i, i)
		fmt.Fprintf(&patches, "- patch: |-\n    apiVersion: security.istio.io/v1\n    kind: PeerAuthentication\n    metadata: {name: default, namespace: ns-%d}\n    spec: {mtls: {mode: PERMISSIVE}}\n", i)
	}
	repo := files("kustomization.yaml", "resources: [a.yaml]\npatches:\n- target: {kind: RoleBinding}\n  patch: |-\n    - {op: add, path: /metadata/labels, value: {a: b}}\n"+patches.String(), "a.yaml", docs.String())
	c := render.NewCache(1 << 26)
	got := full(t, &render.Renderer{Cache: c}, repo, ".")
	if n := c.Counts(); n.Parts < 5 || n.Undivided > 0 {
		t.Errorf("%+v", n)
	}
	if want := full(t, undivided(), repo, "."); got != want {
		t.Error("it is not what the undivided build gives")
	}
}
