package check_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/world"
)

// TestPages renders and checks the examples of each page: what is found in bad/ is its want, and good/ has no finding of its code, and no Error at all.
func TestPages(t *testing.T) {
	archives, err := filepath.Glob("pages/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, path := range archives {
		code := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(code, func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) < 80 {
				t.Error("the page says next to nothing")
			}
			if withoutExample(code) && len(archive.Files) == 0 {
				return
			}
			repo, want := fstest.MapFS{}, -1
			clusters := map[string]*world.Cluster{}
			for i, f := range archive.Files {
				switch f.Name {
				case "want":
					want = i
				case "cluster.yaml", "good-cluster.yaml":
					clusters[f.Name] = cluster(t, f)
				default:
					repo[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
				}
			}
			if want < 0 {
				t.Fatal("the archive has no file want")
			}
			report := look(t, repo, "bad", clusters["cluster.yaml"])
			// An example leaves much of a mesh out: what other rules could not check is none of the page's business.
			report.Gaps = slices.DeleteFunc(report.Gaps, func(g check.Gap) bool { return g.Code != code })
			got := lines(report)
			if !strings.Contains(got, " "+code+" ") {
				t.Errorf("nothing is found by %s in bad/:\n%s", code, got)
			}
			if *update {
				archive.Files[want].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
				t.Errorf("findings in bad/ (-want +got):\n%s", diff)
			}
			for _, f := range look(t, repo, "good", clusters["good-cluster.yaml"]).Findings {
				if f.Code == code || f.Level == check.Error {
					t.Errorf("good/: %s", f)
				}
			}
		})
	}
}

// TestEveryRuleHasAPage also finds pages of rules that are gone.
func TestEveryRuleHasAPage(t *testing.T) {
	files := map[string]bool{}
	for _, r := range check.Rules() {
		files["pages/"+r.Code+".txtar"] = true
		p, err := check.PageOf(strings.ToLower(r.Code))
		if err != nil {
			t.Error(err)
			continue
		}
		if withoutExample(r.Code) && p.Text != "" {
			continue
		}
		if p.Text == "" || len(p.Bad) == 0 || len(p.Good) == 0 || len(p.Found) == 0 {
			t.Errorf("the page of %s is not whole: it wants a text, bad/, good/ and want", r.Code)
		}
	}
	archives, _ := filepath.Glob("pages/*.txtar")
	for _, path := range archives {
		if !files[path] {
			t.Errorf("%s is the page of no rule", path)
		}
	}
	if _, err := check.PageOf("MOOR999"); err == nil || !strings.Contains(err.Error(), "MOOR002") {
		t.Errorf("an unknown code gives %v; want the known ones", err)
	}
}

// withoutExample is true of the rule that no YAML is known for: it tells of a bug of ours. TestPanicIsAFinding shows it.
func withoutExample(code string) bool {
	return code == "MOOR001"
}

// look renders a folder of an archive, with the expanders that a user has, and checks it.
func look(t *testing.T, repo fstest.MapFS, dir string, cluster *world.Cluster) *check.Report {
	t.Helper()
	folder, err := fs.Sub(repo, dir)
	if err != nil {
		t.Fatal(err)
	}
	set, err := (&render.Renderer{Expanders: []render.Expander{app.Expander{}}}).Render(t.Context(), folder, ".")
	if err != nil { // a render refuses more than the check relies on
		set = &render.Set{}
		names, _ := fs.Glob(folder, "*.yaml")
		for _, name := range names {
			data, _ := fs.ReadFile(folder, name)
			set.Objects = append(set.Objects, objects(t, name, data)...)
		}
	}
	if len(set.Objects) == 0 {
		t.Fatalf("%s/ has no objects", dir)
	}
	report, err := check.New().Check(t.Context(), check.Request{Set: set, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// cluster is what a file says lives in a mesh: of Pods and Secrets metadata alone is read.
func cluster(t *testing.T, f txtar.File) *world.Cluster {
	t.Helper()
	c := &world.Cluster{MetadataOnly: map[schema.GroupKind]bool{{Kind: "Pod"}: true, {Kind: "Secret"}: true}}
	for _, o := range objects(t, f.Name, f.Data) {
		if c.MetadataOnly[o.ID().GroupKind()] {
			for field := range o.Unstructured().Object {
				if field != "apiVersion" && field != "kind" && field != "metadata" {
					delete(o.Unstructured().Object, field)
				}
			}
		}
		c.Objects = append(c.Objects, o.Unstructured())
	}
	return c
}

// lines writes the findings and the gaps of a report, a line each.
func lines(r *check.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		note := ""
		if f.Known {
			note += " [known]"
		}
		if f.Foreign {
			note += " [foreign]"
		}
		if f.Suppressed != nil {
			note += " [suppressed: " + f.Suppressed.Reason + "]"
		}
		fmt.Fprintf(&b, "%s%s\n", f, note)
	}
	for _, g := range r.Gaps {
		fmt.Fprintln(&b, g)
	}
	return b.String()
}
