package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// example is a report with one finding of each sort, as a cluster would give it.
func example() *checked {
	in := &checkInput{
		name: "shop", files: fstest.MapFS{"shop/web route.yaml": {Data: []byte("a: 1\n\tweighting: ä\n")}},
		set: &render.Set{Files: []render.File{{Path: "shop/web route.yaml"}}},
	}
	route := render.ID{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
	at := render.Origin{File: "shop/web route.yaml", Line: 2}
	base := check.Finding{Code: "MOOR002", Level: check.Error, Object: route, Origin: at, Field: "spec.http[0].weighting", Message: "unknown field <\x01>", Mend: "did you mean weight?"}
	known, foreign, accepted, external, odd := base, base, base, base, base
	known.Field, known.Known, known.Level = "spec.known", true, check.Warning
	foreign.Object.Name, foreign.Foreign, foreign.Origin, foreign.Level = "other", true, render.Origin{}, check.Info
	accepted.Field, accepted.Suppressed = "spec.accepted", &check.Suppressed{By: check.SuppressAnnotation, Reason: "until May"}
	external.Field, external.Suppressed = "spec.external", &check.Suppressed{By: "check.ignore"}
	odd.Code, odd.Origin = "HOUSE1", render.Origin{}
	r := &checked{version: "v1", failOn: check.Error, cluster: "https://prod:6443", showAll: true, inputs: []*checkInput{in}}
	r.add(in, &check.Report{
		Findings: []check.Finding{base, base, known, foreign, accepted, external, odd},
		Gaps:     []check.Gap{{Code: "MOOR021", About: "the host api", Why: "no cluster was asked"}},
	})
	r.failures = []failure{
		{nil, errors.New("read nowhere: no such file or directory")},
		{in, &render.Error{File: "shop/broken.yaml", Line: 3, Err: errors.New("it is no YAML"), Hint: "mend it"}},
	}
	return r
}

func written(t *testing.T, w checkWriter, r *checked) string {
	t.Helper()
	var b strings.Builder
	if err := w.write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSARIF holds the report against what the schema asks for, as far as it is about what is written here.
func TestSARIF(t *testing.T) {
	var log map[string]any
	text := written(t, checkSARIF{}, example())
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	if log["version"] != "2.1.0" || !strings.Contains(fmt.Sprint(log["$schema"]), "sarif-2.1.0") {
		t.Errorf("version %v, schema %v", log["version"], log["$schema"])
	}
	run := at[map[string]any](t, log, "runs", 0)
	rules := at[[]any](t, run, "tool", "driver", "rules")
	ids := map[string]int{}
	for i, r := range rules {
		id := at[string](t, r, "id")
		if _, twice := ids[id]; twice {
			t.Errorf("rule %s is listed twice", id)
		}
		ids[id] = i
		if at[string](t, r, "shortDescription", "text") == "" || at[string](t, r, "help", "text") == "" {
			t.Errorf("rule %s says nothing", id)
		}
		if level := at[string](t, r, "defaultConfiguration", "level"); !slices.Contains([]string{"error", "warning", "note"}, level) {
			t.Errorf("rule %s has the level %s", id, level)
		}
	}
	if _, ok := ids["MOOR021"]; !ok {
		t.Error("the rule of a gap is not listed")
	}
	bases := at[map[string]any](t, run, "originalUriBaseIds")
	prints := map[string]bool{}
	results := at[[]any](t, run, "results")
	for _, r := range results {
		checkResult(t, r, ids, bases)
		print := at[string](t, r, "partialFingerprints", "mooring/v1")
		if prints[print] {
			t.Errorf("fingerprint %s is there twice", print)
		}
		prints[print] = true
	}
	notes := at[[]any](t, run, "invocations", 0, "toolExecutionNotifications")
	if len(notes) != 3 || at[bool](t, run, "invocations", 0, "executionSuccessful") {
		t.Errorf("%d notifications, want two errors and a gap, and no success", len(notes))
	}
	gap := notes[2]
	if at[string](t, gap, "level") != "note" || at[string](t, gap, "associatedRule", "id") != "MOOR021" {
		t.Errorf("the gap: %v", gap)
	}
	if uri := at[string](t, notes[1], "locations", 0, "physicalLocation", "artifactLocation", "uri"); uri != "shop/broken.yaml" {
		t.Errorf("the error is in %s", uri)
	}
}

// checkResult is what holds of every result.
func checkResult(t *testing.T, r any, rules map[string]int, bases map[string]any) {
	t.Helper()
	id := at[string](t, r, "ruleId")
	if i, ok := rules[id]; !ok || float64(i) != at[float64](t, r, "ruleIndex") {
		t.Errorf("result of rule %s, which is not at its index", id)
	}
	if level := at[string](t, r, "level"); !slices.Contains([]string{"error", "warning", "note"}, level) {
		t.Errorf("level %s", level)
	}
	if at[string](t, r, "message", "text") == "" {
		t.Error("a result says nothing")
	}
	place := at[map[string]any](t, r, "locations", 0, "physicalLocation")
	uri := at[string](t, place, "artifactLocation", "uri")
	if bases[at[string](t, place, "artifactLocation", "uriBaseId")] == nil || strings.HasPrefix(uri, "/") || strings.ContainsAny(uri, " :") {
		t.Errorf("uri %q is not relative to a base that is there", uri)
	}
	if region, ok := place["region"]; ok && (at[float64](t, region, "startLine") < 1 || at[float64](t, region, "startColumn") != 2) {
		t.Errorf("region %v, want column 2", region)
	}
	if state := at[string](t, r, "baselineState"); state != "new" && state != "unchanged" {
		t.Errorf("baselineState %s", state)
	}
}

func TestSARIFSaysWhatBecameOfAFinding(t *testing.T) {
	r := example()
	var log sarifLog
	if err := json.Unmarshal([]byte(written(t, checkSARIF{}, r)), &log); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, result := range log.Runs[0].Results {
		line := fmt.Sprintf("%s %s %s", result.Level, result.Baseline, result.Message.Text[:strings.Index(result.Message.Text, ":")])
		for _, s := range result.Suppressions {
			line += fmt.Sprintf(" %s %s (%s)", s.Status, s.Kind, s.Justification)
		}
		got = append(got, line)
	}
	want := []string{
		"error new VirtualService/shop/web",
		"error new VirtualService/shop/web",
		"warning unchanged VirtualService/shop/web",
		"note new in the cluster",
		"error new VirtualService/shop/web accepted inSource (until May)",
		"error new VirtualService/shop/web accepted external (accepted by check.ignore)",
		"error new VirtualService/shop/web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.cluster = ""
	r.findings = r.findings[:1]
	if text := written(t, checkSARIF{}, r); strings.Contains(text, "baselineState") {
		t.Error("there is a baseline without a cluster")
	}
}

// at follows keys and indexes, and gives what is there as what it has to be.
func at[T any](t *testing.T, v any, path ...any) T {
	t.Helper()
	for i, step := range path {
		switch s := step.(type) {
		case string:
			v = v.(map[string]any)[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				t.Fatalf("nothing at %v", path[:i+1])
			}
			v = list[s]
		}
	}
	value, ok := v.(T)
	if !ok {
		t.Fatalf("%v is %T, want %T", path, v, value)
	}
	return value
}

func TestJUnit(t *testing.T) {
	text := written(t, checkJUnit{}, example())
	var got junitSuites
	if err := xml.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var suites []string
	for _, s := range got.Suites {
		suites = append(suites, fmt.Sprintf("%s: %d tests, %d failures, %d errors, %d skipped", s.Name, s.Tests, s.Failures, s.Errors, s.Skipped))
		if s.Tests != len(s.Cases) {
			t.Errorf("%s: %d cases", s.Name, len(s.Cases))
		}
	}
	want := []string{
		"shop/web route.yaml: 7 tests, 3 failures, 0 errors, 2 skipped",
		"mooring check: 1 tests, 0 failures, 1 errors, 0 skipped",
		"shop/broken.yaml: 1 tests, 0 failures, 1 errors, 0 skipped",
		"not checked: 1 tests, 0 failures, 0 errors, 1 skipped",
	}
	if diff := cmp.Diff(want, suites); diff != "" {
		t.Error(diff)
	}
	if got.Tests != 10 || got.Failures != 3 || got.Errors != 2 || got.Skipped != 3 {
		t.Errorf("in all: %+v", got)
	}
}

// TestGitHub makes sure that each line is one command or a plain text, whatever is in a message.
func TestGitHub(t *testing.T) {
	command := regexp.MustCompile(`^::(error|warning|notice) (file=[^:,]+,(line=\d+,)?(col=\d+,)?)?title=[^:,]+::[^\r\n]+$`)
	lines := strings.Split(strings.TrimSpace(written(t, checkGitHub{}, example())), "\n")
	n := 0
	for _, line := range lines {
		if command.MatchString(line) {
			n++
		} else if strings.HasPrefix(line, "::") {
			t.Errorf("no command: %s", line)
		}
	}
	if n != 9 {
		t.Errorf("%d annotations, want those of 7 findings and 2 errors:\n%s", n, strings.Join(lines, "\n"))
	}
	r := example()
	r.showAll = false
	if got := strings.Count(written(t, checkGitHub{}, r), "\n::"); got != 4 { // the first line has no line before it
		t.Errorf("%d annotations, want those of 3 findings and 2 errors", got+1)
	}
}

func TestTextSaysWhatIsNoFaultOfTheCommit(t *testing.T) {
	r := example()
	text := written(t, checkText{}, r)
	for _, want := range []string{
		"(the mesh has it already)", "(the object is not among the files)", "(accepted by mooring.dev/suppress: until May)",
		"(in the cluster)\n", "(made by the kustomization)\n", "not checked:\n  MOOR021 the host api: no cluster was asked\n",
		"    2 | " + "    weighting: ä\n      |     ^^^^^^^^^\n", "unknown field <·>",
		"3 errors; 2 accepted, 1 in the mesh already, 1 about what else is in the cluster\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	r.showAll = false
	if text = written(t, checkText{}, r); strings.Contains(text, "already)") || !strings.Contains(text, "(--show all lists them)") {
		t.Errorf("without --show all:\n%s", text)
	}
	for i := range 30 {
		r.gaps = append(r.gaps, check.Gap{Code: "MOOR021", About: fmt.Sprint("host ", i), Why: "no"})
	}
	if text = written(t, checkText{}, r); strings.Count(text, "  MOOR021 ") != mostGaps || !strings.Contains(text, "  and 25 more; --show all lists them\n") {
		t.Errorf("many gaps:\n%s", text)
	}
}
