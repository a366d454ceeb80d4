package test_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// command is one call that a document tells the reader to make.
type command struct {
	line int
	args []string
}

// page is what can be checked of a document.
type page struct {
	commands []command
	// paths are files and folders of this repository that the text names.
	paths map[string]int
	// yaml are the blocks of YAML, by the line they begin at.
	yaml map[int]string
}

var (
	inlineCode = regexp.MustCompile("`([^`]+)`")
	repoPath   = regexp.MustCompile(`^(\./)?(cmd|sync|render|apply|repos|deploy|examples|test)(/[\w.-]+)*/?$`)
	separators = regexp.MustCompile("\\|\\||&&|[|;()`]|\\$\\(")
	assignment = regexp.MustCompile(`^[A-Z_]+=`)
)

// readPage takes a Markdown document apart: the lines after "$ " in blocks of console, all lines in blocks of sh, and code in the text.
func readPage(markdown string) page {
	p := page{paths: make(map[string]int), yaml: make(map[int]string)}
	block, inside, begun := "", false, 0
	for i, text := range strings.Split(markdown, "\n") {
		line := i + 1
		if language, fence := strings.CutPrefix(strings.TrimSpace(text), "```"); fence {
			inside, block, begun = !inside, language, line
			continue
		}
		switch {
		case inside && block == "yaml":
			p.yaml[begun] += text + "\n"
		case inside && block == "console":
			if typed, ok := strings.CutPrefix(text, "$ "); ok {
				p.commands = append(p.commands, commands(line, typed)...)
			}
		case inside && (block == "sh" || block == "bash"):
			p.commands = append(p.commands, commands(line, text)...)
		case !inside:
			for _, code := range inlineCode.FindAllStringSubmatch(text, -1) {
				if repoPath.MatchString(code[1]) {
					p.paths[path.Clean(code[1])] = line
				}
				p.commands = append(p.commands, commands(line, code[1])...)
			}
		}
	}
	return p
}

// commands are the calls of make and mooring in a line of shell.
func commands(line int, shell string) []command {
	shell, _, _ = strings.Cut(shell, " #")
	var found []command
	for _, part := range separators.Split(shell, -1) {
		args := strings.Fields(part)
		for len(args) > 0 && assignment.MatchString(args[0]) {
			args = args[1:]
		}
		if len(args) > 1 && (path.Base(args[0]) == "mooring" || args[0] == "make") {
			found = append(found, command{line, append([]string{path.Base(args[0])}, args[1:]...)})
		}
	}
	return found
}

// program answers what a binary says about its commands.
type program interface {
	// help is what `mooring ARGS --help` prints.
	help(ctx context.Context, args ...string) (string, error)
}

// binary is the path of a built mooring.
type binary string

func (b binary) help(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, string(b), append(args, "--help")...).Output()
	return string(out), err
}

// untrue are the commands of a page that do not exist, with the line that names them.
func untrue(ctx context.Context, p page, targets []string, mooring program) ([]string, error) {
	var found []string
	for _, c := range p.commands {
		switch c.args[0] {
		case "make":
			for _, word := range c.args[1:] {
				if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !slices.Contains(targets, word) {
					found = append(found, fmt.Sprintf("line %d: make %s: the Makefile has no such target", c.line, word))
				}
			}
		case "mooring":
			faults, err := untrueCall(ctx, mooring, c.args[1:])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", c.line, err)
			}
			for _, fault := range faults {
				found = append(found, fmt.Sprintf("line %d: %s", c.line, fault))
			}
		}
	}
	return found, nil
}

var subcommand = regexp.MustCompile(`^[a-z][a-z-]*$`)

// untrueCall checks one call of mooring: its subcommand, when the first word looks like one, and its flags.
func untrueCall(ctx context.Context, mooring program, args []string) ([]string, error) {
	name, sub := "mooring", []string(nil)
	if subcommand.MatchString(args[0]) {
		sub, args = args[:1], args[1:]
		name += " " + sub[0]
	}
	help, err := mooring.help(ctx, sub...)
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w", name, err)
	}
	// For a command that it does not have, cobra prints the help of the whole.
	if usage := regexp.MustCompile(`(?m)^Usage:\n  ` + regexp.QuoteMeta(name) + `( |$)`); !usage.MatchString(help) {
		return []string{name + ": mooring has no such command"}, nil
	}
	var faults []string
	for _, word := range args {
		flag, _, _ := strings.Cut(strings.Trim(word, "[]"), "=")
		if !strings.HasPrefix(flag, "-") || flag == "-" || flag == "--" {
			continue
		}
		// A help text lists "-n, --namespace string". A word of a sentence does not begin a line.
		if listed := regexp.MustCompile(`(?m)^ +(-\w, )?` + regexp.QuoteMeta(flag) + `[, \n]`); !listed.MatchString(help) {
			faults = append(faults, fmt.Sprintf("%s %s: %s has no such flag", name, flag, name))
		}
	}
	return faults, nil
}

func buildMooring(t *testing.T) binary {
	t.Helper()
	target := filepath.Join(t.TempDir(), "mooring")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", target, "./cmd/mooring")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build mooring: %v\n%s", err, out)
	}
	return binary(target)
}

func makeTargets(t *testing.T) []string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, found := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(found[1]))
	}
	if !slices.Contains(targets, "test") {
		t.Fatalf("no target test among those read from the Makefile: %v", targets)
	}
	return targets
}

// documents are README.md and those of the examples.
func documents(t *testing.T) map[string]page {
	t.Helper()
	dir := root(t)
	files := []string{"README.md"}
	err := fs.WalkDir(os.DirFS(dir), "examples", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".md" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := make(map[string]page)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		pages[file] = readPage(string(content))
	}
	return pages
}

// TestNames builds the binary once for both.
func TestNames(t *testing.T) {
	mooring := buildMooring(t)
	t.Run("documents", func(t *testing.T) { documentsNameWhatExists(t, mooring) })
	t.Run("help", func(t *testing.T) { helpNamesWhatExists(t, mooring) })
}

func documentsNameWhatExists(t *testing.T, mooring program) {
	targets := makeTargets(t)
	for name, p := range documents(t) {
		faults, err := untrue(t.Context(), p, targets, mooring)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, fault := range faults {
			t.Errorf("%s: %s", name, fault)
		}
		for named, line := range p.paths {
			if _, err := os.Stat(filepath.Join(root(t), named)); err != nil {
				t.Errorf("%s: line %d: %v", name, line, err)
			}
		}
	}
	readme := documents(t)["README.md"]
	for _, call := range [][]string{{"make", "demo"}, {"make", "test"}} {
		if !slices.ContainsFunc(readme.commands, func(c command) bool { return slices.Equal(c.args, call) }) {
			t.Errorf("README.md does not tell the reader: %s", strings.Join(call, " "))
		}
	}
}

// The examples that the binary prints itself are documents too.
func helpNamesWhatExists(t *testing.T, mooring program) {
	whole, err := mooring.help(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^  ([a-z][a-z-]*)  +\S`).FindAllStringSubmatch(whole, -1)
	if len(listed) < 5 {
		t.Fatalf("%d commands read from the help of mooring:\n%s", len(listed), whole)
	}
	for _, name := range listed {
		help, err := mooring.help(t.Context(), name[1])
		if err != nil {
			t.Errorf("mooring %s --help: %v", name[1], err)
		}
		_, examples, _ := strings.Cut(help, "\nExamples:\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		var p page
		for i, line := range strings.Split(examples, "\n") {
			p.commands = append(p.commands, commands(i+1, line)...)
		}
		faults, err := untrue(t.Context(), p, nil, mooring)
		if err != nil {
			t.Errorf("examples of mooring %s: %v", name[1], err)
		}
		for _, fault := range faults {
			t.Errorf("examples of mooring %s: %s", name[1], fault)
		}
	}
}

// scripted is a program with one command, get, for the test of the check itself.
type scripted struct{}

func (scripted) help(_ context.Context, args ...string) (string, error) {
	if slices.Equal(args, []string{"get"}) {
		return "Show.\n\nUsage:\n  mooring get [NAME...] [flags]\n\nFlags:\n  -o, --output string   or --absent\n      --watch\n", nil
	}
	return "Mooring.\n\nUsage:\n  mooring [command]\n", nil
}

func TestUntrueDocsAreFound(t *testing.T) {
	markdown := strings.Join([]string{
		"Type `make tset`, `make test`, `mooring get --wide` or `mooring put prod`; see `render/nowhere.go`.",
		"```console",
		"$ export X=1; X=2 make demo     # not make this",
		"$ kubectl get pods | bin/mooring get -o yaml --absent=1 $(mooring got)",
		"make output that is not typed",
		"```",
		"```yaml",
		"kind: Mooring",
		"```",
		"```sh",
		"make all V=1 -j2",
		"docker build -t mooring .",
		"```",
	}, "\n")
	p := readPage(markdown)
	got, err := untrue(t.Context(), p, []string{"test"}, scripted{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"line 1: make tset: the Makefile has no such target",
		"line 1: mooring get --wide: mooring get has no such flag",
		"line 1: mooring put: mooring has no such command",
		"line 3: make demo: the Makefile has no such target",
		"line 4: mooring get --absent: mooring get has no such flag",
		"line 4: mooring got: mooring has no such command",
		"line 11: make all: the Makefile has no such target",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("untrue (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[string]int{"render/nowhere.go": 1}, p.paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(map[int]string{7: "kind: Mooring\n"}, p.yaml); diff != "" {
		t.Errorf("yaml (-want +got):\n%s", diff)
	}
}

// moorings are the objects of that kind in a stream of YAML.
func moorings(stream string) ([]*unstructured.Unstructured, error) { return ours(stream, "Mooring") }

// ours are the objects of a kind of Mooring's own in a stream of YAML.
func ours(stream, kind string) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	for _, document := range regexp.MustCompile(`(?m)^---.*\n`).Split(stream, -1) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if object.GetKind() == kind && strings.HasPrefix(object.GetAPIVersion(), "mooring.dev/") {
			found = append(found, object)
		}
	}
	return found, nil
}

// exampleMoorings are those below a folder of examples, by file.
func exampleMoorings(dir fs.FS) (map[string][]*unstructured.Unstructured, error) {
	all := make(map[string][]*unstructured.Unstructured)
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)) {
			return err
		}
		content, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		found, err := moorings(string(content))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if len(found) > 0 {
			all[name] = found
		}
		return nil
	})
	return all, err
}

// severalRepositories is the folder of examples that holds a repository in each of its folders.
const severalRepositories = "promotion"

// eachExample runs a test for every folder of examples that is a repository as a user would have it, with its Moorings.
func eachExample(t *testing.T, run func(t *testing.T, dir fs.FS, moorings map[string][]*unstructured.Unstructured)) {
	t.Helper()
	examples := filepath.Join(root(t), "examples")
	names := folders(t, examples)
	names = slices.DeleteFunc(names, func(name string) bool { return name == policiesFolder || name == severalRepositories })
	for _, inner := range folders(t, filepath.Join(examples, severalRepositories)) {
		names = append(names, path.Join(severalRepositories, inner))
	}
	if len(names) < 2 {
		t.Fatalf("there are no examples but %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := os.DirFS(filepath.Join(examples, name))
			found, err := exampleMoorings(dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				t.Fatal("no Mooring in it: nobody can keep it on a cluster")
			}
			run(t, dir, found)
		})
	}
}

// folders directly in a folder.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Every path that a Mooring of an example keeps, and every form of a recipe, is rendered and checked as the agent would.
func TestExamplesRenderAndCheck(t *testing.T) {
	renderer := sync.NewRenderer()
	eachExample(t, func(t *testing.T, dir fs.FS, moorings map[string][]*unstructured.Unstructured) {
		kept := make(map[string]string) // who names it, by path
		for file, objects := range moorings {
			for _, mooring := range objects {
				spec, ok, err := unstructured.NestedString(mooring.Object, "spec", "path")
				if err != nil || !ok {
					t.Errorf("%s: Mooring %s has no path: %v", file, mooring.GetName(), err)
					continue
				}
				kept[path.Clean(spec)] = file + ": Mooring " + mooring.GetName()
			}
		}
		for _, form := range forms(t, dir) {
			kept[form] = form
		}
		for folder, where := range kept {
			set, err := renderer.Render(t.Context(), dir, folder)
			if err != nil {
				t.Errorf("%s: %v", where, err)
				continue
			}
			if len(set.Objects) == 0 {
				t.Errorf("%s: there is no object in %s", where, folder)
			}
			digest := set.Digest()
			findings, err := check.Check(t.Context(), set)
			if err != nil {
				t.Errorf("%s: %v", where, err)
			}
			if set.Digest() != digest { // other Sets have the same objects
				t.Errorf("%s: the check has written into the objects", where)
			}
			for _, finding := range findings {
				if finding.Level == check.Error {
					t.Errorf("%s: %s", where, finding)
				}
			}
		}
	})
}

// forms are the folders of an example that show one thing twice: as an AppConfiguration, and as Istio's own objects.
func forms(t *testing.T, dir fs.FS) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "app" || entry.Name() == "istio") {
			found = append(found, name)
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What README.md and the examples show as a Mooring or an Alarm, the API server takes, to the last field.
func TestMooringsOfTheDocsAreAccepted(t *testing.T) {
	cluster := kube.Start(t)
	namespace := cluster.Namespace(t)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	accept := func(t *testing.T, where string, mooring *unstructured.Unstructured) {
		t.Helper()
		mooring.SetNamespace(namespace)
		resource := schema.GroupVersionResource{Group: "mooring.dev", Version: "v1alpha1", Resource: strings.ToLower(mooring.GetKind()) + "s"}
		if _, err := client.Resource(resource).Namespace(namespace).Create(t.Context(), mooring, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		}); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	t.Run("README.md", func(t *testing.T) {
		shown := map[string]int{}
		blocks := documents(t)["README.md"].yaml
		for _, line := range slices.Sorted(maps.Keys(blocks)) {
			found, err := moorings(blocks[line])
			if err != nil {
				t.Errorf("line %d: %v", line, err)
			}
			alarms, err := ours(blocks[line], "Alarm")
			if err != nil {
				t.Errorf("line %d: %v", line, err)
			}
			for _, object := range append(found, alarms...) {
				shown[object.GetKind()]++
				accept(t, fmt.Sprintf("line %d", line), object)
			}
		}
		if shown["Mooring"] == 0 || shown["Alarm"] == 0 {
			t.Errorf("it shows %v", shown)
		}
	})
	eachExample(t, func(t *testing.T, _ fs.FS, moorings map[string][]*unstructured.Unstructured) {
		for file, objects := range moorings {
			for _, mooring := range objects {
				accept(t, file, mooring)
			}
		}
	})
}

// What README.md shows for a path of a Mooring renders without a fault, to what it says.
func TestExamplesOfTheReadmeRender(t *testing.T) {
	renderer := sync.NewRenderer()
	shown := map[string]bool{}
	for line, block := range documents(t)["README.md"].yaml {
		for kind, wanted := range map[string][]string{
			"AppConfiguration": {"DestinationRule/bookinfo/reviews", "PeerAuthentication/bookinfo/reviews", "VirtualService/bookinfo/reviews"},
			"IstioOperator":    {"Deployment/istio-system/istiod", "Deployment/istio-system/istio-ingressgateway"},
		} {
			if !strings.Contains(block, "kind: "+kind+"\n") {
				continue
			}
			shown[kind] = true
			set, err := renderer.Render(t.Context(), fstest.MapFS{"shown.yaml": {Data: []byte(block)}}, ".")
			if err != nil {
				t.Errorf("line %d: %v", line, err)
				continue
			}
			findings, err := check.Check(t.Context(), set)
			if err != nil || check.Blocks(findings) {
				t.Errorf("line %d: found %v, %v", line, findings, err)
			}
			for _, want := range wanted {
				if !slices.ContainsFunc(set.Objects, func(o render.Object) bool { return o.ID().String() == want }) {
					t.Errorf("line %d: the %s does not become a %s", line, kind, want)
				}
			}
			if kind == "AppConfiguration" && len(set.Objects) != len(wanted) {
				t.Errorf("line %d: the %s becomes %d objects, want %d", line, kind, len(set.Objects), len(wanted))
			}
		}
	}
	if len(shown) != 2 {
		t.Errorf("of AppConfiguration and IstioOperator it shows %v", shown)
	}
}

// The first thing that README.md tells whoever has a cluster.
func TestDeployInstalls(t *testing.T) {
	cluster := kube.Start(t)
	deploy := filepath.Join(root(t), "deploy")
	out, err := cluster.Kubectl(t.Context(), "apply", "-k", deploy)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"customresourcedefinition.apiextensions.k8s.io/moorings.mooring.dev", "deployment.apps/mooring"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl apply -k deploy did not apply %s:\n%s", want, out)
		}
	}
	// A second time nothing changes, so it can be kept in Git as it is.
	if out, err := cluster.Kubectl(t.Context(), "diff", "-k", deploy); err != nil {
		t.Error(errors.Join(err, errors.New(out)))
	}
}
