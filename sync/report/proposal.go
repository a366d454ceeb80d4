package report

import (
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render/check"
)

// ProposalParts are what the text of a pull request is made of.
type ProposalParts struct {
	// Mooring and From as namespace/name, and the Revision that is proposed.
	Mooring, From, Revision string
	// Health there, as a list in Markdown.
	Health string
	// Foretold is what Foretold wrote.
	Foretold string
}

// Proposal is the text of a pull request, in Markdown. It holds no secret: plans and findings are masked.
func Proposal(p ProposalParts) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mooring `%s` would get `%s`, which is proven in Mooring `%s`.\n\n", p.Mooring, p.Revision, p.From)
	b.WriteString("It is applied once this is merged, and not before. Close it, and this commit does not come: the next one that is proven is proposed. ")
	b.WriteString("The text is kept up to date; what you add to the title stays.\n\n")
	fmt.Fprintf(&b, "### How it fares there\n\n%s\n", p.Health)
	b.WriteString(p.Foretold)
	return b.String()
}

// Foretold says what a plan would change and what the check found, or why there is no plan.
func Foretold(plan []byte, findings []check.Finding, err error) string {
	var b strings.Builder
	b.WriteString("### What it would change\n\n")
	switch {
	case err != nil:
		fmt.Fprintf(&b, "**It would be refused here:** %s\n", first(err))
	case len(strings.TrimSpace(string(plan))) == 0:
		b.WriteString("Nothing.\n")
	default:
		fmt.Fprintf(&b, "%s", fenced(string(plan)))
	}
	b.WriteString("\n### What the check found\n\n")
	if len(findings) == 0 {
		b.WriteString("Nothing.\n")
	}
	for i, f := range findings {
		if i == maxListed {
			fmt.Fprintf(&b, "- and %d more\n", len(findings)-maxListed)
			break
		}
		fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(f.String(), "\n", " "))
	}
	return b.String()
}

// fenced is a block of text that Markdown leaves alone, whatever is in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
