// Package test_test looks at the whole repository: who may import whom, and whether what the docs say is so.
package test_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const module = "github.com/mooring-dev/mooring"

// arrows are the imports among our own packages that the layout allows. A name that ends in /... stands for all below it as well.
// A package that is not named here has no place yet: give it one, and think of which arrows it needs.
var arrows = map[string][]string{
	"repos": {"repos/signature"},
	// Who signed a commit or a tag.
	"repos/signature": {},
	"render":          {},
	"render/app":      {"render"},
	"render/mesh":     {"render"},
	"render/check":    {"render", "render/check/..."},
	// What the rules stand on: the objects in the form of Istio's libraries, and what those libraries, schemas and policies say of them.
	"render/check/world":    {"render"},
	"render/check/analysis": {"render", "render/check/world"},
	"render/check/proxy":    {"render", "render/check/world"},
	"render/check/schema":   {"render"},
	"render/check/legacy":   {"render"},
	"render/check/policy":   {"render"},
	// What bears on a Mooring's objects and is nobody's.
	"render/check/unmanaged": {"render", "render/check/world"},
	"apply":                  {"render", "apply/watch"},
	"apply/watch":            {},
	"apply/istiod":           {"apply", "render"},
	"sync/v1alpha1":          {},
	"sync/schedule":          {},
	// A forge is reached on the way of its Git server.
	"sync/forge":  {"repos"},
	"sync/metric": {},
	// An outcome is all that a pass did, so its fields have the types of every stage.
	"sync/report":     {"sync/v1alpha1", "repos", "render", "render/check", "render/check/unmanaged", "apply"},
	"sync/alarm":      {"sync/v1alpha1", "sync/report"},
	"sync":            {"repos/...", "render/...", "apply", "apply/istiod", "sync/v1alpha1", "sync/schedule", "sync/report", "sync/alarm", "sync/forge", "sync/metric"},
	"sync/proof":      {"render/...", "apply"},
	"cmd/mooring/...": {"repos/...", "render/...", "apply/...", "sync/...", "cmd/mooring/..."},
	"test/...":        {"repos/...", "render/...", "apply/...", "sync/...", "test/..."},
}

// fences are libraries that only some packages may know, so that the rest can be read and tested without them.
var fences = map[string][]string{
	"github.com/robfig/cron":                  {"sync/schedule"}, // it panics for what was not read before
	"k8s.io/client-go":                        {"apply", "apply/istiod", "apply/watch", "sync", "sync/report", "sync/alarm", "cmd/mooring/...", "test/..."},
	"sigs.k8s.io/controller-runtime":          {"apply", "sync", "sync/report", "sync/alarm", "cmd/mooring/...", "test/..."},
	"github.com/go-git":                       {"repos", "test/..."},
	"sigs.k8s.io/kustomize":                   {"render", "test/..."},
	"github.com/nicholas-fedor":               {"sync/alarm"},
	"github.com/prometheus/client_golang/api": {"sync/metric"},
	"github.com/google/go-github":             {"sync/forge"},
	"gitlab.com/gitlab-org/api":               {"sync/forge"},
	"code.gitea.io/sdk":                       {"sync/forge", "test/..."},
	"github.com/spf13/cobra":                  {"cmd/mooring/...", "test/..."},
}

// Names that say nothing about what a package gives.
var emptyNames = []string{"utils", "util", "common", "helpers", "helper", "types", "manager", "misc", "shared"}

// maxLines of a file that somebody has to read.
const maxLines = 450

// source is one Go file, as far as the rules look at it.
type source struct {
	// file is relative to the root, with forward slashes.
	file    string
	pkg     string // the name in its package clause
	imports []string
	lines   int
	// generated files and tests may be as long as they like.
	generated bool
	// inits and exits are the lines of init functions and of calls that end the process outside main.
	inits, exits []int
}

// dir is the package's folder.
func (s source) dir() string { return path.Dir(s.file) }

func (s source) test() bool { return strings.HasSuffix(s.file, "_test.go") }

// covers says whether a pattern of the tables above stands for the folder.
func covers(pattern, dir string) bool {
	below, all := strings.CutSuffix(pattern, "/...")
	return dir == below || all && strings.HasPrefix(dir, below+"/")
}

// place finds the entry of the table that a folder falls under, the exact one first.
func place(dir string) (allowed []string, ok bool) {
	if allowed, ok := arrows[dir]; ok {
		return allowed, true
	}
	for pattern, allowed := range arrows {
		if covers(pattern, dir) {
			return allowed, true
		}
	}
	return nil, false
}

// faults are all breaches of the layout in these files, one a line, sorted. Tests may import what they need, and may be long.
func faults(sources []source) []string {
	var found []string
	fault := func(s source, line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s:%d: %s", s.file, line, fmt.Sprintf(format, args...)))
	}
	for _, s := range sources {
		allowed, known := place(s.dir())
		if !known {
			fault(s, 1, "package %s has no place in the layout: give it one in test/layers_test.go", s.dir())
		}
		if slices.Contains(emptyNames, strings.TrimSuffix(s.pkg, "_test")) {
			fault(s, 1, "a package called %s: name it for what it gives", s.pkg)
		}
		for _, line := range s.inits {
			fault(s, line, "func init: let main wire what is needed")
		}
		if s.test() {
			continue
		}
		for _, line := range s.exits {
			fault(s, line, "ends the process: return an error, only main may exit")
		}
		if s.lines > maxLines && !s.generated {
			fault(s, maxLines, "%d lines, more than %d: divide the file by its nouns or verbs", s.lines, maxLines)
		}
		for _, imported := range s.imports {
			if reason := forbidden(s.dir(), allowed, imported); known && reason != "" {
				fault(s, 1, "%s", reason)
			}
		}
	}
	slices.Sort(found)
	return found
}

// forbidden says why a package in dir may not import something, or nothing when it may.
func forbidden(dir string, allowed []string, imported string) string {
	if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
		if !slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, ours) }) {
			return fmt.Sprintf("%s may not import %s; it may import: %s", dir, ours, cmp.Or(strings.Join(allowed, ", "), "nothing of ours"))
		}
		return ""
	}
	for library, inside := range fences {
		if strings.HasPrefix(imported, library) && !slices.ContainsFunc(inside, func(pattern string) bool { return covers(pattern, dir) }) {
			return fmt.Sprintf("%s may not import %s; only these may: %s", dir, imported, strings.Join(inside, ", "))
		}
	}
	return ""
}

// read parses one file. That an exit is in main is decided here: the function main of a package main.
func read(name string, content []byte) (source, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{file: name, pkg: parsed.Name.Name, lines: bytes.Count(content, []byte("\n")), generated: ast.IsGenerated(parsed)}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("%s: %w", name, err)
		}
		s.imports = append(s.imports, imported)
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if ok && function.Recv == nil && function.Name.Name == "init" {
			s.inits = append(s.inits, files.Position(function.Pos()).Line)
		}
		if ok && function.Recv == nil && function.Name.Name == "main" && s.pkg == "main" {
			continue
		}
		ast.Inspect(declaration, func(node ast.Node) bool {
			if call, ok := node.(*ast.SelectorExpr); ok && exits(call) {
				s.exits = append(s.exits, files.Position(call.Pos()).Line)
			}
			return true
		})
	}
	return s, nil
}

// exits says whether the expression is one of the functions that end the process, called or handed on.
func exits(call *ast.SelectorExpr) bool {
	of, ok := call.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch name := call.Sel.Name; of.Name {
	case "os", "syscall":
		return name == "Exit"
	case "log", "klog":
		return strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Exit")
	}
	return false
}

// sources of the main module below root: no test data, no nested module, nothing hidden.
func sources(root fs.FS) ([]source, error) {
	var all []source
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, nested := fs.Stat(root, path.Join(name, "go.mod"))
			if name != "." && (nested == nil || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		s, err := read(name, content)
		all = append(all, s)
		return err
	})
	return all, err
}

// root of the repository: Go runs a test in the folder of its package.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLayers(t *testing.T) {
	all, err := sources(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, s := range all {
		seen[s.dir()] = true
	}
	for _, dir := range []string{"repos", "render", "render/check", "apply", "sync", "sync/v1alpha1", "sync/report", "cmd/mooring", "test/kube"} {
		if !seen[dir] {
			t.Errorf("no Go file found in %s: this test does not look at what it should", dir)
		}
	}
	for _, fault := range faults(all) {
		t.Error(fault)
	}
}

// The top level is the first page of the repository. What git ignores is not on it.
func TestTopLevel(t *testing.T) {
	expected := []string{
		"cmd", "sync", "render", "apply", "repos", "deploy", "examples", "test",
		"Makefile", "Dockerfile", "go.mod", "go.sum", "README.md", "LICENSE", "bin",
	}
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(expected, name) {
			t.Errorf("%s at the top level: it belongs into one of %s", name, strings.Join(expected[:8], ", "))
		}
	}
}

// A test of the layout that finds nothing may be one that cannot. Each of these files breaks a rule, and one breaks none.
func TestFaultsAreFound(t *testing.T) {
	long := "package apply\n" + strings.Repeat("\n", maxLines)
	for _, test := range []struct {
		name, file, content string
		want                []string
	}{
		{
			name: "all is well", file: "apply/plan.go",
			content: "package apply\n\nimport (\n\t_ \"github.com/mooring-dev/mooring/render\"\n\t_ \"k8s.io/client-go/dynamic\"\n)\n",
		},
		{
			name: "arrow that points up", file: "repos/fetch.go",
			content: "package repos\n\nimport _ \"github.com/mooring-dev/mooring/sync\"\n",
			want:    []string{"repos/fetch.go:1: repos may not import sync; it may import: repos/signature"},
		},
		{
			name: "arrow to a package below an allowed one", file: "apply/plan.go",
			content: "package apply\n\nimport _ \"github.com/mooring-dev/mooring/render/check\"\n",
			want:    []string{"apply/plan.go:1: apply may not import render/check; it may import: render, apply/watch"},
		},
		{
			name: "product that imports tests", file: "cmd/mooring/main.go",
			content: "package main\n\nimport _ \"github.com/mooring-dev/mooring/test/kube\"\n\nfunc main() {}\n",
			want: []string{
				"cmd/mooring/main.go:1: cmd/mooring may not import test/kube; it may import: repos/..., render/..., apply/..., sync/..., cmd/mooring/...",
			},
		},
		{
			name: "tests may", file: "apply/plan_test.go",
			content: "package apply_test\n\nimport _ \"github.com/mooring-dev/mooring/test/kube\"\n",
		},
		{
			name: "client where none belongs", file: "render/build.go",
			content: "package render\n\nimport _ \"k8s.io/client-go/rest\"\n",
			want:    []string{"render/build.go:1: render may not import k8s.io/client-go/rest; only these may: apply, apply/istiod, apply/watch, sync, sync/report, sync/alarm, cmd/mooring/..., test/..."},
		},
		{
			name: "client in the API types", file: "sync/v1alpha1/mooring.go",
			content: "package v1alpha1\n\nimport _ \"sigs.k8s.io/controller-runtime/pkg/scheme\"\n",
			want: []string{
				"sync/v1alpha1/mooring.go:1: sync/v1alpha1 may not import sigs.k8s.io/controller-runtime/pkg/scheme; " +
					"only these may: apply, sync, sync/report, sync/alarm, cmd/mooring/..., test/...",
			},
		},
		{
			name: "git outside repos", file: "sync/once.go",
			content: "package sync\n\nimport _ \"github.com/go-git/go-git/v5\"\n",
			want:    []string{"sync/once.go:1: sync may not import github.com/go-git/go-git/v5; only these may: repos, test/..."},
		},
		{
			name: "kustomize outside render", file: "render/check/check.go",
			content: "package check\n\nimport _ \"sigs.k8s.io/kustomize/api/krusty\"\n",
			want:    []string{"render/check/check.go:1: render/check may not import sigs.k8s.io/kustomize/api/krusty; only these may: render, test/..."},
		},
		{
			name: "package without a place, and an empty name", file: "repos/utils/utils.go",
			content: "package utils\n",
			want: []string{
				"repos/utils/utils.go:1: a package called utils: name it for what it gives",
				"repos/utils/utils.go:1: package repos/utils has no place in the layout: give it one in test/layers_test.go",
			},
		},
		{
			name: "exit from a deep helper, and init", file: "cmd/mooring/get.go",
			content: "package main\n\nimport \"os\"\n\nfunc init() {}\n\nfunc get() { os.Exit(1) }\n\nfunc main() { os.Exit(0) }\n",
			want: []string{
				"cmd/mooring/get.go:5: func init: let main wire what is needed",
				"cmd/mooring/get.go:7: ends the process: return an error, only main may exit",
			},
		},
		{
			name: "exit handed on, and log.Fatal", file: "sync/agent.go",
			content: "package sync\n\nvar exit = os.Exit\n\nfunc main() { log.Fatalf(\"\") }\n",
			want: []string{
				"sync/agent.go:3: ends the process: return an error, only main may exit",
				"sync/agent.go:5: ends the process: return an error, only main may exit",
			},
		},
		{
			name: "file that is too long", file: "apply/long.go", content: long,
			want: []string{"apply/long.go:450: 451 lines, more than 450: divide the file by its nouns or verbs"},
		},
		{name: "generated and too long", file: "apply/long.go", content: "// Code generated by hand. DO NOT EDIT.\n\n" + long},
		{name: "test that is long", file: "apply/long_test.go", content: long},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := read(test.file, []byte(test.content))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(test.want, faults([]source{s})); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// A file that does not parse must not pass for one without faults.
func TestBrokenSourceIsAnError(t *testing.T) {
	if _, err := read("apply/plan.go", []byte("package")); err == nil {
		t.Error("a broken file was read without an error")
	}
	if _, err := sources(os.DirFS(filepath.Join(t.TempDir(), "absent"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error of an absent tree is %v", err)
	}
}
