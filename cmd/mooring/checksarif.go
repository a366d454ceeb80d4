package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render/check"
)

// checkSARIF is the report in the form that code scanning reads: SARIF 2.1.0
// (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). It has everything, whatever --show says: what is accepted, and what was there before, has its place in
// the form.
type checkSARIF struct{}

const (
	sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"
	sarifRoot   = "SRCROOT"
	projectURL  = "https://github.com/mooring-dev/mooring"
	// analysisURL is where Istio describes its own codes.
	analysisURL = "https://istio.io/latest/docs/reference/config/analysis/"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool                `json:"tool"`
	Invocations []sarifInvocation        `json:"invocations"`
	Bases       map[string]sarifArtifact `json:"originalUriBaseIds"`
	ColumnKind  string                   `json:"columnKind"`
	Results     []sarifResult            `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string      `json:"id"`
	Short   sarifText   `json:"shortDescription"`
	Full    *sarifText  `json:"fullDescription,omitempty"`
	Help    sarifText   `json:"help"`
	HelpURI string      `json:"helpUri,omitempty"`
	Default sarifConfig `json:"defaultConfiguration"`
}

type sarifConfig struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Rule      *sarifRuleID    `json:"associatedRule,omitempty"`
	Locations []sarifLocation `json:"locations,omitempty"`
}

type sarifRuleID struct {
	ID    string `json:"id"`
	Index int    `json:"index"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    int                `json:"ruleIndex"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations,omitempty"`
	Fingerprints map[string]string  `json:"partialFingerprints"`
	Baseline     string             `json:"baselineState,omitempty"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
}

type sarifLocation struct {
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI         string     `json:"uri,omitempty"`
	URIBaseID   string     `json:"uriBaseId,omitempty"`
	Description *sarifText `json:"description,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

type sarifLogical struct {
	Name     string `json:"name"`
	FullName string `json:"fullyQualifiedName"`
	Kind     string `json:"kind"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Status        string `json:"status"`
	Justification string `json:"justification"`
}

func (checkSARIF) write(w io.Writer, r *checked) error {
	rules := &sarifRules{house: r.house, index: map[string]int{}, list: []sarifRule{}}
	seen := map[string]int{}
	results := make([]sarifResult, len(r.findings))
	for i, f := range r.findings {
		results[i] = sarifResult{
			RuleID: f.Code, RuleIndex: rules.of(f.Code, f.Level), Level: sarifLevel(f.Level), Message: sarifText{Text: sarifMessage(f)},
			Locations: []sarifLocation{sarifPlace(f)}, Suppressions: sarifSuppressions(f.Suppressed),
			Fingerprints: map[string]string{"mooring/v1": fingerprint(f, seen)},
		}
		switch {
		case f.Known:
			results[i].Baseline = "unchanged"
		case r.cluster != "": // all results have a state, or none has
			results[i].Baseline = "new"
		}
	}
	run := sarifRun{
		Invocations: []sarifInvocation{{Successful: len(r.failures) == 0, Notifications: sarifNotifications(r, rules)}},
		Bases:       map[string]sarifArtifact{sarifRoot: {Description: &sarifText{Text: "The root of the repository."}}},
		ColumnKind:  "unicodeCodePoints",
		Results:     results,
	}
	run.Tool.Driver = sarifDriver{Name: "mooring", Version: r.version, InformationURI: projectURL, Rules: rules.list}
	return writeJSON(w, sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{run}})
}

// sarifRules lists the rules that something refers to, each once.
type sarifRules struct {
	house map[string]string
	index map[string]int
	list  []sarifRule
}

// of gives the index of a rule. The level is that of a finding, for a rule of which nothing else is known.
func (s *sarifRules) of(code string, level check.Level) int {
	if i, ok := s.index[code]; ok {
		return i
	}
	rule, page := ruleOf(code)
	r := sarifRule{ID: code, Short: sarifText{Text: cmp.Or(s.house[code], "a rule of this house")}, Default: sarifConfig{sarifLevel(level)}}
	r.Help = r.Short
	if rule.Code != "" {
		r.Short, r.Default = sarifText{Text: rule.Title}, sarifConfig{sarifLevel(rule.Level)}
		r.Help = sarifText{Text: cmp.Or(rule.Mend, rule.Title)}
	}
	if page != nil {
		paragraphs := strings.Split(page.Text, "\n\n")
		r.Full = &sarifText{Text: oneLine(paragraphs[0])}
		r.Help = sarifText{Text: page.Text + "\n", Markdown: pageMarkdown(page)}
	}
	if strings.HasPrefix(code, "IST") {
		r.HelpURI = analysisURL + strings.ToLower(code) + "/"
	}
	s.index[code] = len(s.list)
	s.list = append(s.list, r)
	return s.index[code]
}

// ruleOf is what is known of a code; the page may be nil, and the rule empty for a code that is none of ours.
func ruleOf(code string) (check.Rule, *check.Page) {
	if page, err := check.PageOf(code); err == nil {
		return page.Rule, page
	}
	all := check.Rules()
	if i := slices.IndexFunc(all, func(r check.Rule) bool { return r.Code == code }); i >= 0 {
		return all[i], nil
	}
	return check.Rule{}, nil
}

// pageMarkdown is a page with its examples.
func pageMarkdown(page *check.Page) string {
	var b strings.Builder
	b.WriteString(page.Text + "\n")
	for _, part := range []struct {
		title    string
		examples []check.Example
	}{{"Wrong", page.Bad}, {"Right", page.Good}} {
		for _, e := range part.examples {
			fmt.Fprintf(&b, "\n%s, `%s`:\n\n```yaml\n%s\n```\n", part.title, e.Name, strings.TrimSpace(e.Content))
		}
	}
	return b.String()
}

func sarifLevel(level check.Level) string {
	switch level {
	case check.Info:
		return "note"
	case check.Warning:
		return "warning"
	}
	return "error"
}

func sarifMessage(f foundIn) string {
	text := f.Subject() + ": " + f.Text()
	if f.Foreign {
		text = "in the cluster: " + text
	}
	return oneLine(text)
}

// sarifPlace is where a result is shown. A viewer refuses a result without a file.
func sarifPlace(f foundIn) sarifLocation {
	place := sarifLocation{
		Physical: sarifPhysical{Artifact: artifactOf(f.file())},
		Logical:  []sarifLogical{{Name: f.Object.Name, FullName: f.Object.String(), Kind: "object"}},
	}
	if f.Origin.Line > 0 {
		place.Physical.Region = &sarifRegion{StartLine: f.Origin.Line, StartColumn: f.column()}
	}
	return place
}

func artifactOf(file string) sarifArtifact {
	return sarifArtifact{URI: (&url.URL{Path: file}).EscapedPath(), URIBaseID: sarifRoot}
}

func sarifSuppressions(s *check.Suppressed) []sarifSuppression {
	if s == nil {
		return nil
	}
	kind := "external"
	if s.By == check.SuppressAnnotation {
		kind = "inSource"
	}
	return []sarifSuppression{{Kind: kind, Status: "accepted", Justification: cmp.Or(s.Reason, "accepted by "+s.By)}}
}

// sarifNotifications are what could not be checked, and what could not even be rendered.
func sarifNotifications(r *checked, rules *sarifRules) []sarifNotification {
	var all []sarifNotification
	for _, e := range r.errorsForJSON(true) {
		n := sarifNotification{Level: "error", Message: sarifText{Text: e.text()}}
		if e.File != "" {
			n.Locations = []sarifLocation{{Physical: sarifPhysical{Artifact: artifactOf(e.File)}}}
			if e.Line > 0 {
				n.Locations[0].Physical.Region = &sarifRegion{StartLine: e.Line}
			}
		}
		all = append(all, n)
	}
	for _, g := range r.gaps {
		n := sarifNotification{Level: "note", Message: sarifText{Text: oneLine(g.String())}}
		if g.Code != "" {
			n.Rule = &sarifRuleID{ID: g.Code, Index: rules.of(g.Code, check.Warning)}
		}
		all = append(all, n)
	}
	return all
}

// indexes of list items are no part of a fingerprint: an item may move.
var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// fingerprint is the same for the same fault after lines have moved. Of several that are the same but for the place, each has a number.
func fingerprint(f foundIn, seen map[string]int) string {
	parts := []string{f.Code, f.file(), f.Object.Group, f.Object.String(), f.From.String(), indexes.ReplaceAllString(f.Field, "[]"), f.Message}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	print := hex.EncodeToString(sum[:16])
	seen[print]++
	return fmt.Sprintf("%s:%d", print, seen[print])
}
