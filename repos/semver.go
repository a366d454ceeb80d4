package repos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// parseRange reads a range of versions in the form that Helm and Flux have too.
func parseRange(text string) (*semver.Constraints, error) {
	within, err := semver.NewConstraint(text)
	if err != nil || strings.TrimSpace(text) == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, failf(KindRef, `write it as 1.x, ~1.2.3, ^1.2 or ">=1.2.0 <2.0.0"`, "semver %q is not a range of versions", clean(text))
	}
	return within, nil
}

// version is a tag that is one.
type version struct {
	*semver.Version
	tag    string
	commit plumbing.Hash
}

// versions are the tags that are versions, three numbers with or without a v before them, the highest first. Two tags
// may be one version, as v1.2.0 and 1.2.0, or differ in what counts for nothing, as 1.2.0+1 and 1.2.0+2: then the names
// decide, so that it is always the same one.
func versions(adv *packp.AdvRefs) []version {
	var all []version
	for name, hash := range adv.References {
		tag, isTag := strings.CutPrefix(name, "refs/tags/")
		if !isTag || badRefName(tag) != "" {
			continue
		}
		v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if err != nil {
			continue
		}
		if peeled, annotated := adv.Peeled[name]; annotated {
			hash = peeled
		}
		all = append(all, version{v, tag, hash})
	}
	slices.SortFunc(all, func(a, b version) int {
		return cmp.Or(b.Compare(a.Version), cmp.Compare(b.tag, a.tag))
	})
	return all
}

// pickVersion finds the highest tag in a range. A pre-release counts where the range itself names one.
func (r Ref) pickVersion(adv *packp.AdvRefs) (Revision, error) {
	within, err := parseRange(r.SemVer)
	if err != nil {
		return Revision{}, err
	}
	all := versions(adv)
	for _, v := range all {
		if within.Check(v.Version) {
			return Revision{Ref: v.tag, Commit: Commit(v.commit.String())}, nil
		}
	}
	missing := &RefNotFoundError{Ref: r, Total: len(all)}
	const shown = 5
	for _, v := range all[:min(len(all), shown)] {
		missing.Exist = append(missing.Exist, v.tag)
	}
	return Revision{}, fail(KindRefNotFound, missing, r.rangeHint(adv, within, all))
}

// rangeHint says what would be in the range, or why nothing can be.
func (r Ref) rangeHint(adv *packp.AdvRefs, within *semver.Constraints, all []version) string {
	for _, v := range all {
		if release, err := v.SetPrerelease(""); err == nil && v.Prerelease() != "" && within.Check(&release) {
			return fmt.Sprintf(`%s is a pre-release; a range that shall take those names one, as ">=%d.%d.%d-0" does`, v.tag, v.Major(), v.Minor(), v.Patch())
		}
	}
	others := Ref{Tag: "v1.0.0"}.missing(adv)
	switch {
	case len(all) > 0:
		return "widen the range, or push a tag that is in it"
	case others.Total > 0:
		return "a version is a tag of three numbers, as v1.2.3; the tags here are named otherwise: " + strings.Join(others.Exist, ", ")
	}
	return "push a tag, such as v1.0.0, or follow a branch"
}
