package check

import (
	"path"
	"slices"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// Request is what is to be checked, and how strictly.
type Request struct {
	Set *render.Set
	// Cluster is what lives; nil checks the set alone, and what can only be known from a cluster is reported as not checked.
	Cluster *world.Cluster
	// Ignore are codes that nobody wants to hear of.
	Ignore []string
	// Suppress are findings that are known and accepted.
	Suppress []Suppression
	// Policies of the house are asked about each object. Mooring is what they see of the Mooring that the set belongs to: name, namespace,
	// path, revision, branch, url, labels and annotations; nil where there is none.
	Policies []*policy.Policy
	Mooring  map[string]any
}

// Suppression accepts the findings of one code about some objects.
type Suppression struct {
	Code string
	// Resource is a pattern for what an ID's String gives, such as Service/apps/* or Namespace/*; a * stands for any run of characters but a slash.
	Resource string
}

// Suppressed says who accepted a finding, and why.
type Suppressed struct {
	// By is what says so: the annotation, or the Mooring's spec.check.
	By string
	// Reason that was given; empty where none is asked for.
	Reason string
}

// matches says whether the suppression is meant for the finding.
func (s Suppression) matches(f Finding) bool {
	if s.Code != f.Code && s.Code != "*" {
		return false
	}
	for _, name := range []string{f.Object.String(), f.From.String()} {
		if ok, err := path.Match(s.Resource, name); err == nil && ok {
			return true
		}
	}
	return false
}

// suppress marks a finding that the request accepts.
func (r Request) suppress(f Finding) *Suppressed {
	if slices.Contains(r.Ignore, f.Code) {
		return &Suppressed{By: "check.ignore"}
	}
	if slices.ContainsFunc(r.Suppress, func(s Suppression) bool { return s.matches(f) }) {
		return &Suppressed{By: "check.suppress"}
	}
	return nil
}

func (r Request) house() house {
	return house{policies: r.Policies, mooring: r.Mooring}
}
