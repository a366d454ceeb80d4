package render_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mooring-dev/mooring/render"
)

const (
	aMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	bMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
	cMap = "# was: apiVersion: v1\n# kind: ConfigMap\n---\n# metadata: {name: b}\n"
	lfs  = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)

// TestWhatIsNotReadIsNeverASmallerSet has the ways in which a file of a set of two can be lost. A set of one would be taken for the wish to have one, and
// the other object would be pruned. So each of them is an error that names the file, or, where kustomize and kubectl take it without a word, a file that is
// called hollow: the guard of package apply holds what would be deleted then.
func TestWhatIsNotReadIsNeverASmallerSet(t *testing.T) {
	const list = "resources: [a.yaml, b.yaml]\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		names string // what the error names
	}{
		"a resource that is not there":      {fstest.MapFS{"kustomization.yaml": file(list)}, "b.yaml"},
		"an empty resource":                 {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file("")}, "b.yaml"},
		"a resource of white space":         {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file("\n \n---\n")}, "b.yaml"},
		"a resource of comments":            {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file(cMap)}, "b.yaml"},
		"a resource that is an LFS pointer": {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file(lfs)}, "b.yaml"},
		"a resource that is a list of nothing": {
			fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file("apiVersion: v1\nkind: List\nitems: []\n")}, "b.yaml",
		},
		"a resource that is null":        {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file("null\n")}, "b.yaml"},
		"a resource that leads out":      {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": link("../../b.yaml")}, "b.yaml"},
		"a resource that leads nowhere":  {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": link("gone.yaml")}, "b.yaml"},
		"a resource with half an object": {fstest.MapFS{"kustomization.yaml": file(list), "b.yaml": file("apiVersion: v1\nkind: Config")}, "b.yaml"},
		"a base that is not there":       {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, base]\n")}, "base"},
		"a base without a kustomization": {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, base]\n"), "base/b.yaml": file(bMap)}, "base"},
		"a base of nothing":              {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, base]\n"), "base/kustomization.yaml": file("")}, "base/kustomization.yaml"},
		"a base whose list is empty":     {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, base]\n"), "base/kustomization.yaml": file("resources: []\n")}, "base/kustomization.yaml"},
		"a base whose list is commented out": {
			fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, base]\n"), "base/kustomization.yaml": file("resources:\n# - b.yaml\n"), "base/b.yaml": file(bMap)}, "base/kustomization.yaml",
		},
		"a component that is not there": {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml]\ncomponents: [parts]\n")}, "parts"},
		"a pattern":                     {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml, '*.yml']\n"), "b.yml": file(bMap)}, "*.yml"},
		"a pattern of components":       {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml]\ncomponents: ['parts/*']\n"), "parts/one/kustomization.yaml": file("kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nresources: [b.yaml]\n"), "parts/one/b.yaml": file(bMap)}, "parts/*"},
		"a file of a generator":         {fstest.MapFS{"kustomization.yaml": file("resources: [a.yaml]\nconfigMapGenerator: [{name: b, files: [gone.txt]}]\n")}, "gone.txt"},

		"plain: an empty file":           {fstest.MapFS{"b.yaml": file("")}, "b.yaml"},
		"plain: a file of comments":      {fstest.MapFS{"b.yaml": file(cMap)}, "b.yaml"},
		"plain: null":                    {fstest.MapFS{"b.yaml": file("null\n")}, "b.yaml"},
		"plain: an LFS pointer":          {fstest.MapFS{"b.yaml": file(lfs)}, "b.yaml"},
		"plain: a list of nothing":       {fstest.MapFS{"b.yaml": file("apiVersion: v1\nkind: List\nitems: []\n")}, "b.yaml"},
		"plain: a link that leads out":   {fstest.MapFS{"b.yaml": link("../../b.yaml")}, "b.yaml"},
		"plain: a link to nothing":       {fstest.MapFS{"b.yaml": link("gone.yaml")}, "b.yaml"},
		"plain: a folder that is a link": {fstest.MapFS{"more": link("../../more")}, "more"},
		"plain: half an object":          {fstest.MapFS{"b.yaml": file("apiVersion: v1\nkind: Config")}, "b.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["a.yaml"] = file(aMap)
			set, err := new(render.Renderer).Render(t.Context(), c.files, ".")
			if err == nil {
				if len(set.Hollow) != 1 || set.Hollow[0] != c.names {
					t.Errorf("the set has %d objects, and %v are hollow, want %s", len(set.Objects), set.Hollow, c.names)
				}
				return
			}
			if !strings.Contains(err.Error(), c.names) {
				t.Errorf("the error does not name %s: %v", c.names, err)
			}
		})
	}
}

// unreadable is a repository in which one file cannot be read: a blob that is missing from the store, a disk that fails.
type unreadable struct {
	fstest.MapFS
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.Open(name)
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadFile(name)
}

func TestFileThatCannotBeReadIsNeverASmallerSet(t *testing.T) {
	for _, kustomization := range []string{"", "resources: [a.yaml, b.yaml]\n"} {
		files := fstest.MapFS{"a.yaml": {Data: []byte(aMap)}, "b.yaml": {Data: []byte(bMap)}}
		if kustomization != "" {
			files["kustomization.yaml"] = &fstest.MapFile{Data: []byte(kustomization)}
		}
		if set, err := new(render.Renderer).Render(t.Context(), unreadable{files, "b.yaml"}, "."); err == nil || !strings.Contains(err.Error(), "b.yaml") {
			t.Errorf("with kustomization %q: %v, %v", kustomization, set, err)
		}
	}
}

// What is not lost is not called so.
func TestHollowIsNotWhatIsMeant(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"comments around objects":    {"b.yaml": {Data: []byte(cMap + "---\n" + bMap + "---\n# end\n")}},
		"what is for local use":      {"b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {config.kubernetes.io/local-config: 'true'}}\n")}},
		"data of a generator":        {"kustomization.yaml": {Data: []byte("resources: [a.yaml]\nconfigMapGenerator: [{name: b, files: [b.yaml]}]\n")}, "b.yaml": {Data: []byte(cMap)}},
		"a component of patches":     {"kustomization.yaml": {Data: []byte("resources: [a.yaml]\ncomponents: [part]\n")}, "part/kustomization.yaml": {Data: []byte("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: x-\n")}},
		"a base of generated things": {"kustomization.yaml": {Data: []byte("resources: [a.yaml, base]\n")}, "base/kustomization.yaml": {Data: []byte("configMapGenerator: [{name: b, literals: [x=y]}]\n")}},
		"a file that is no YAML":     {"README.md": {Data: []byte("")}, ".hidden.yaml": {Data: []byte("")}},
	} {
		t.Run(name, func(t *testing.T) {
			files["a.yaml"] = &fstest.MapFile{Data: []byte(aMap)}
			cache := new(render.Cache)
			for range 2 { // the second time from the cache
				set, err := (&render.Renderer{Cache: cache}).Render(t.Context(), files, ".")
				if err != nil || len(set.Hollow) != 0 {
					t.Errorf("error %v; hollow: %v", err, set)
				}
			}
		})
	}
}
