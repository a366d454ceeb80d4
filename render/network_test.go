package render_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/mooring-dev/mooring/render"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// world counts what leaves a build: requests to a server on this machine, and programs that are run.
type world struct {
	url      string
	requests atomic.Int32
	programs string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{programs: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		w.requests.Add(1)
		_, _ = fmt.Fprint(rw, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: remote}\n")
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >>%s/ran\nexit 1\n", w.programs)
	for _, name := range []string{"git", "helm", "helmV3", "docker", "run"} {
		if err := os.WriteFile(filepath.Join(w.programs, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", w.programs+":"+os.Getenv("PATH"))
	return w
}

// left says what has left since the last time.
func (w *world) left() string {
	var all []string
	if n := w.requests.Swap(0); n > 0 {
		all = append(all, fmt.Sprintf("%d requests", n))
	}
	ran := filepath.Join(w.programs, "ran")
	if text, err := os.ReadFile(ran); err == nil {
		all = append(all, string(text))
		_ = os.Remove(ran)
	}
	return strings.Join(all, ", ")
}

// wayOut is a way to the network or to a program.
type wayOut struct {
	name          string
	kustomization string
	files         map[string]string
	alsoKustomize bool // kustomize does not do it either, with its plugins off
}

// waysOut are all ways that kustomize has.
func waysOut(w *world) []wayOut {
	plugin := func(kind, rest string) string {
		return "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: x}\n" + rest
	}
	file := w.url + "/a.yaml"
	return []wayOut{
		{name: "resource", kustomization: "resources: [" + file + "]"},
		{name: "base", kustomization: "bases: [" + w.url + "/org/repo]"},
		{name: "component", kustomization: "components: ['" + w.url + "/org/repo']"},
		{name: "git", kustomization: "resources: ['git::" + w.url + "/org/repo']"},
		{name: "ssh", kustomization: "resources: ['ssh://git@127.0.0.1:1/org/repo']"},
		{name: "scp", kustomization: "resources: ['git@127.0.0.1:org/repo.git']"},
		{name: "github", kustomization: "resources: [github.com/org/repo]"},
		{name: "github component", kustomization: "components: ['GitHub.com:org/repo']"},
		{name: "file", kustomization: "resources: ['file://" + w.programs + "/org/repo']"},
		{name: "crds", kustomization: "crds: [" + file + "]"},
		{name: "configurations", kustomization: "configurations: [" + file + "]"},
		{name: "openapi", kustomization: "resources: []\nopenapi: {path: " + file + "}"},
		{name: "generators", kustomization: "generators: [" + file + "]"},
		{name: "transformers", kustomization: "transformers: [" + file + "]"},
		{name: "validators", kustomization: "validators: [" + file + "]"},
		{name: "validators git", kustomization: "validators: [github.com/org/repo]"},
		{name: "patches", kustomization: "patches: [{path: " + file + "}]"},
		{name: "patchesStrategicMerge", kustomization: "patchesStrategicMerge: [" + file + "]"},
		{name: "patchesJson6902", kustomization: "patchesJson6902: [{target: {kind: A, name: b}, path: " + file + "}]"},
		{name: "replacements", kustomization: "replacements: [{path: " + file + "}]"},
		{name: "configMapGenerator", kustomization: "configMapGenerator: [{name: x, files: [" + file + "]}]"},
		{name: "configMapGenerator key", kustomization: "configMapGenerator: [{name: x, files: ['k=" + file + "']}]"},
		{name: "configMapGenerator env", kustomization: "configMapGenerator: [{name: x, env: " + file + "}]"},
		{name: "configMapGenerator envs", kustomization: "configMapGenerator: [{name: x, envs: [" + file + "]}]"},
		{name: "secretGenerator", kustomization: "secretGenerator: [{name: x, files: [" + file + "]}]"},
		{name: "other case", kustomization: "reſources: ['" + strings.Replace(file, "http", "HTTP", 1) + "']"},
		{name: "base of a base", kustomization: "resources: [b]", files: map[string]string{"b/kustomization.yml": "resources: [" + file + "]"}},
		{name: "plugin patch", kustomization: "transformers: [t.yaml]", files: map[string]string{"t.yaml": plugin("PatchTransformer", "path: "+file)}},
		{name: "plugin patch in a folder", kustomization: "transformers: [t]", files: map[string]string{
			"t/Kustomization": "resources: [t.yaml]", "t/t.yaml": plugin("PatchTransformer", "path: "+file),
		}},
		{name: "plugin patch made by a patch", kustomization: "transformers: [t]", files: map[string]string{
			"t/kustomization.yaml": "resources: [t.yaml]\npatches: [{target: {kind: PatchTransformer}, patch: '[{\"op\": \"replace\", \"path\": \"/path\", \"value\": \"" + file + "\"}]'}]",
			"t/t.yaml":             plugin("PatchTransformer", "path: x"),
		}},
		{name: "plugin folder that is a resource before", kustomization: "resources: [t]\ntransformers: [t]", files: map[string]string{
			"t/kustomization.yaml": "resources: [t.yaml]\npatches: [{target: {kind: PatchTransformer}, patch: '[{\"op\": \"replace\", \"path\": \"/path\", \"value\": \"" + file + "\"}]'}]",
			"t/t.yaml":             plugin("PatchTransformer", "path: x"),
		}},
		{name: "plugin long s", kustomization: "generators: [t.yaml]", files: map[string]string{"t.yaml": plugin("ConfigMapGenerator", "fileſ: ["+file+"]")}},
		{name: "plugin inline", kustomization: "generators:\n- |\n  " + strings.ReplaceAll(plugin("ConfigMapGenerator", "files: ["+file+"]"), "\n", "\n  ")},
		{name: "plugin replacement", kustomization: "transformers: [t.yaml]", files: map[string]string{"t.yaml": plugin("ReplacementTransformer", "replacements: [{path: "+file+"}]")}},
		{name: "plugin json patch", kustomization: "transformers: [t.yaml]", files: map[string]string{"t.yaml": plugin("PatchJson6902Transformer", "target: {name: x}\npath: "+file)}},
		{name: "plugin merge patch", kustomization: "transformers: [t.yaml]", files: map[string]string{"t.yaml": plugin("PatchStrategicMergeTransformer", "paths: ["+file+"]")}},
		{name: "helm", alsoKustomize: true, kustomization: "helmCharts: [{name: x, repo: " + w.url + "}]"},
		{name: "helm old", alsoKustomize: true, kustomization: "helmChartInflationGenerator: [{chartName: x, chartRepoUrl: " + w.url + "}]"},
		{name: "helm plugin", alsoKustomize: true, kustomization: "generators: [t.yaml]", files: map[string]string{"t.yaml": plugin("HelmChartInflationGenerator", "name: x\nrepo: "+w.url)}},
		{name: "exec", alsoKustomize: true, kustomization: "generators: [t.yaml]", files: map[string]string{
			"t.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/function: \"exec: {path: run}\"}}\n",
		}},
		{name: "container", alsoKustomize: true, kustomization: "transformers: [t.yaml]", files: map[string]string{
			"t.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x, annotations: {config.kubernetes.io/function: \"container: {image: x}\"}}\n",
		}},
	}
}

// TestNothingLeaves tries every way that kustomize has to the network and to programs. For each, kustomize itself shows that it is
// one, or is known to refuse it too.
func TestNothingLeaves(t *testing.T) {
	w := newWorld(t)
	for _, test := range waysOut(w) {
		t.Run(test.name, func(t *testing.T) {
			repo, memory := fstest.MapFS{}, filesys.MakeFsInMemory()
			add := func(name, text string) {
				repo[name] = &fstest.MapFile{Data: []byte(text)}
				if err := memory.WriteFile("/repo/"+name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			add("kustomization.yaml", test.kustomization+"\n")
			for name, text := range test.files {
				add(name, text)
			}
			set, err := new(render.Renderer).Render(t.Context(), repo, ".")
			if err == nil {
				t.Errorf("it is rendered: %v", set.Objects)
			}
			if left := w.left(); left != "" {
				t.Errorf("there are %s", left)
			}
			if len(render.Errors(err)) == 0 || render.Errors(err)[0].File == "" {
				t.Errorf("the error names no file: %v", err)
			}
			// Without this the test could be about ways that are none.
			_, _ = krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/repo")
			if left := w.left(); (left == "") != test.alsoKustomize {
				t.Errorf("kustomize itself: there are %q", left)
			}
		})
	}
}
