package analysis_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"istio.io/istio/pkg/config/analysis/msg"

	"github.com/mooring-dev/mooring/render/check/analysis"
)

// TestEveryCodeIsAccountedFor compares the tables with the library: each of its codes can come or never does, and each analyzer has an entry.
func TestEveryCodeIsAccountedFor(t *testing.T) {
	never := analysis.Never()
	come := map[string]bool{}
	for _, codes := range analysis.Codes() {
		for _, code := range codes {
			come[code] = true
		}
	}
	for _, m := range msg.All() {
		if why := never[m.Code()]; come[m.Code()] == (why != "") {
			t.Errorf("%s can come: %t; never comes: %q", m.Code(), come[m.Code()], why)
		}
		delete(come, m.Code())
		delete(never, m.Code())
	}
	if len(come)+len(never) > 0 {
		t.Errorf("the library has no code of these: %v %v", come, never)
	}
	names := map[string]bool{}
	for _, a := range analysis.Analyzers() {
		names[a.Metadata().Name] = true
	}
	for name := range analysis.Codes() {
		if !names[name] {
			t.Errorf("there is no analyzer %s", name)
		}
	}
}

// TestCodesOfEachAnalyzer reads in the library's source what each analyzer reports.
func TestCodesOfEachAnalyzer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "pkg/config/analysis")
	messages, err := os.ReadFile(filepath.Join(root, "msg/messages.gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	codeOf := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+) = diag\.NewMessageType\(diag\.\w+, "(IST\d+)"`).FindAllStringSubmatch(string(messages), -1) {
		codeOf[m[1]] = m[2]
	}
	sources, err := filepath.Glob(filepath.Join(root, "analyzers/*/*.go"))
	if err != nil || len(sources) < 30 || len(codeOf) < 50 {
		t.Fatalf("%d sources, %d messages: %v", len(sources), len(codeOf), err)
	}
	reports := map[string]bool{}
	name, report := regexp.MustCompile(`Name:\s*"([\w.]+)"`), regexp.MustCompile(`msg\.New(\w+)\(`)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		m := name.FindStringSubmatch(string(text))
		found := report.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			continue
		}
		if m == nil {
			t.Errorf("%s reports, and is no analyzer", source)
			continue
		}
		for _, f := range found {
			if analysis.Never()[codeOf[f[1]]] == "" {
				reports[m[1]+" "+codeOf[f[1]]] = true
			}
		}
	}
	listed := map[string]bool{}
	for analyzer, codes := range analysis.Codes() {
		for _, code := range codes {
			listed[analyzer+" "+code] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(reports)), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("what the analyzers report (-library +table):\n%s", diff)
	}
}
