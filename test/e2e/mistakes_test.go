package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
	"istio.io/istio/istioctl/pkg/analyze"
	"istio.io/istio/istioctl/pkg/cli"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/test/world"
)

var updateTable = flag.Bool("update-table", false, "write the table of mistakes into README.md")

// TestWhoFindsMistakes gives each mistake of testdata/mistakes to the API server with Istio's definitions, to istioctl analyze on the files and to Mooring on the
// same files without a cluster, and compares what they find with the table in README.
func TestWhoFindsMistakes(t *testing.T) {
	w := shared(t)
	paths, err := filepath.Glob("testdata/mistakes/*.txtar")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d mistakes, %v", len(paths), err)
	}
	var table strings.Builder
	table.WriteString("| mistake | API server | istioctl analyze | Mooring |\n|---|---|---|---|\n")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mooring, set := mooringFinds(t, archive)
		if mooring == "" {
			t.Errorf("%s: Mooring does not find it", path)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", strings.TrimSuffix(strings.TrimSpace(string(archive.Comment)), "."),
			orDash(serverFinds(t, w.World, set)), orDash(istioctlFinds(t, archive)), orDash(mooring))
	}
	const readme, begin, end = "../../README.md", "<!-- mistakes -->\n", "<!-- /mistakes -->\n"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	have, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README has no table of mistakes; it would be\n%s", table.String())
	}
	if *updateTable {
		if err := os.WriteFile(readme, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != table.String() {
		t.Errorf("README says\n%s\nand this is so:\n%s", have, table.String())
	}
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// mooringFinds lists the codes of what the check of the files alone finds, and gives the objects.
func mooringFinds(t *testing.T, archive *txtar.Archive) (string, *render.Set) {
	t.Helper()
	repo := fstest.MapFS{}
	for _, f := range archive.Files {
		repo[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	set, err := sync.NewRenderer().Render(t.Context(), repo, ".")
	if err != nil {
		t.Fatalf("%s: %v", archive.Comment, err)
	}
	report, err := check.New().Check(t.Context(), check.Request{Set: set})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range report.Findings {
		found = append(found, f.Code+" "+string(f.Level))
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", "), set
}

// serverFinds tries to create each object: by itself the API server drops what it does not know, and where the client asks for strict
// validation, as kubectl does, it refuses that.
func serverFinds(t *testing.T, w *world.World, set *render.Set) string {
	t.Helper()
	ns := w.Cluster.Namespace(t)
	found := ""
	for _, o := range set.Objects {
		u := o.Unstructured().DeepCopy()
		if u.GetNamespace() != "" {
			u.SetNamespace(ns)
		}
		for _, how := range []string{metav1.FieldValidationIgnore, metav1.FieldValidationStrict} {
			err := w.Client().Create(t.Context(), u.DeepCopy(), client.DryRunAll, client.FieldValidation(how))
			switch {
			case err == nil:
				continue
			case meta.IsNoMatchError(err):
				return "has no such kind, unless its definition was left behind"
			case how == metav1.FieldValidationIgnore:
				return "refuses"
			}
			found = "refuses where the client asks it to be strict"
		}
	}
	return found
}

var codeOfIstio = regexp.MustCompile(`(Error|Warning|Info) \[(IST[0-9]{4})\]`)

// istioctlFinds runs istioctl analyze over the files, without a cluster.
func istioctlFinds(t *testing.T, archive *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range archive.Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	cmd := analyze.Analyze(cli.NewCLIContext(nil))
	cmd.SetArgs([]string{"--use-kube=false", "--all-namespaces", "--color=false", dir})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage = true
	_ = cmd.Execute() // it is an error that something was found
	var found []string
	for _, m := range codeOfIstio.FindAllStringSubmatch(out.String(), -1) {
		found = append(found, m[2]+" "+m[1])
	}
	if len(found) == 0 && !strings.Contains(out.String(), "No validation issues found") {
		t.Fatalf("istioctl analyze says neither what it found nor that it found nothing:\n%s", out.String())
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}
