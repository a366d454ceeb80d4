package check

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// pages are the documentation of the rules, an archive for each code. Its comment is the text; the files below bad/ and good/ are the examples, which a
// test renders and checks; cluster.yaml is what lives in the mesh of the bad one, and good-cluster.yaml of the good one, where that matters; want is what is found in bad.
//
//go:embed pages/*.txtar
var pages embed.FS

// Page is the documentation of one rule.
type Page struct {
	Rule
	// Text says what happens in the mesh, why nobody else says so, and how it is mended. Paragraphs are separated by empty lines.
	Text string
	// Bad is an example that the rule finds a fault in, Good the same mended.
	Bad, Good []Example
	// Found is what is reported of Bad, as [Finding.String] writes it.
	Found []string
}

// Example is one file of an example.
type Example struct {
	Name, Content string
}

// PageOf gives the documentation of a code. The error names codes that are known when this one is not.
func PageOf(name string) (*Page, error) {
	rule, known := ruleOf(strings.ToUpper(name))
	if !known {
		return nil, fmt.Errorf("no rule has the code %q; %s", name, knownCodes())
	}
	data, err := pages.ReadFile("pages/" + rule.Code + ".txtar")
	if err != nil {
		return nil, fmt.Errorf("%s has no page: %w", rule.Code, err)
	}
	return readPage(rule, txtar.Parse(data)), nil
}

func readPage(rule Rule, archive *txtar.Archive) *Page {
	p := &Page{Rule: rule, Text: strings.TrimSpace(string(archive.Comment))}
	for _, f := range archive.Files {
		folder, name, _ := strings.Cut(f.Name, "/")
		switch folder {
		case "bad":
			p.Bad = append(p.Bad, Example{name, string(f.Data)})
		case "good":
			p.Good = append(p.Good, Example{name, string(f.Data)})
		case "want":
			p.Found = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return p
}

func knownCodes() string {
	var mooring, istio []string
	for _, r := range Rules() {
		if strings.HasPrefix(r.Code, "MOOR") {
			mooring = append(mooring, r.Code)
		} else {
			istio = append(istio, r.Code)
		}
	}
	slices.Sort(mooring)
	slices.Sort(istio)
	return fmt.Sprintf("known are %s and %s", strings.Join(mooring, ", "), strings.Join(istio, ", "))
}
