package repos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Commit is the id of a commit: 40 hexadecimal digits. Empty means none.
type Commit string

// valid tells whether c is written as Git writes ids.
func (c Commit) valid() bool {
	return len(c) == 40 && strings.Trim(string(c), "0123456789abcdef") == ""
}

func (c Commit) hash() plumbing.Hash { return plumbing.NewHash(string(c)) }

// Ref says which commit of a repository is wanted. Exactly one field is set.
type Ref struct {
	// Branch without refs/heads/.
	Branch string
	// Tag without refs/tags/, lightweight or annotated.
	Tag string
	// SemVer is a range of versions, such as 1.x: the highest tag in it.
	SemVer string
	// Commit is a full id.
	Commit string
	// Name is any ref by its full name, such as refs/pull/7/head.
	Name string
}

// Validate tells whether the ref can be asked for.
func (r Ref) Validate() error {
	set := 0
	for _, v := range []string{r.Branch, r.Tag, r.SemVer, r.Commit, r.Name} {
		if v != "" {
			set++
		}
	}
	if set != 1 {
		return failf(KindRef, "set one of branch, tag, semver, commit and name", "ref has %d fields set, want exactly one", set)
	}
	switch {
	case r.SemVer != "":
		_, err := parseRange(r.SemVer)
		return err
	case r.Commit != "":
		if !Commit(r.Commit).valid() {
			return failf(KindRef, "write the full id, 40 lower-case hexadecimal digits, as git rev-parse prints it", "commit %q is not a full commit id", r.Commit)
		}
		return nil
	case r.Name != "":
		if r.Name == "HEAD" {
			return nil
		}
		if !strings.HasPrefix(r.Name, "refs/") {
			return failf(KindRef, "write it in full, such as refs/pull/7/head, or use branch or tag", "name %q does not begin with refs/", r.Name)
		}
	case strings.HasPrefix(r.short(), "refs/"):
		return failf(KindRef, "leave out refs/heads/ or refs/tags/, or use name", "%s is a full name", r)
	}
	if why := badRefName(r.short()); why != "" {
		return failf(KindRef, "see git help check-ref-format", "%s is not a name that Git allows: it %s", r, why)
	}
	return nil
}

// short is the name as the user wrote it.
func (r Ref) short() string {
	return cmp.Or(r.Branch, r.Tag, r.Name, r.SemVer, r.Commit)
}

// full is the name that the server lists.
func (r Ref) full() string {
	switch {
	case r.Branch != "":
		return "refs/heads/" + r.Branch
	case r.Tag != "":
		return "refs/tags/" + r.Tag
	}
	return r.Name
}

// String writes the sort and the name: branch "main".
func (r Ref) String() string {
	return fmt.Sprintf("%s %q", r.sort(), r.short())
}

func (r Ref) sort() string {
	switch {
	case r.Branch != "":
		return "branch"
	case r.Tag != "":
		return "tag"
	case r.SemVer != "":
		return "semver"
	case r.Commit != "":
		return "commit"
	}
	return "ref"
}

func (r Ref) plural() string {
	if r.sort() == "branch" {
		return "branches"
	}
	return r.sort() + "s"
}

// badRefName says what is wrong with a ref's name by the rules of git-check-ref-format(1); empty when nothing is.
func badRefName(name string) string {
	switch {
	case len(name) > 255:
		return "is longer than 255 bytes"
	case strings.Contains(name, ".."), strings.Contains(name, "@{"), strings.Contains(name, "//"), name == "@":
		return `holds "..", "@{" or "//"`
	case strings.HasPrefix(name, "/"), strings.HasSuffix(name, "/"), strings.HasSuffix(name, "."):
		return `begins or ends with "/" or ends with "."`
	case strings.HasPrefix(name, "-"):
		return `begins with "-"`
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) {
			return fmt.Sprintf("holds %q", r)
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return `has a part that begins with "." or ends with ".lock"`
		}
	}
	return ""
}

// Revision is a commit and the name by which it was found.
type Revision struct {
	// Ref is the branch or tag without refs/…, or the full name of another ref; empty for a bare commit.
	Ref string
	// Commit that the ref pointed at.
	Commit Commit
}

// IsZero tells whether there is no commit.
func (r Revision) IsZero() bool { return r.Commit == "" }

// String writes env/prod@sha1:4f0c…, or sha1:4f0c… for a bare commit; nothing for the zero Revision.
func (r Revision) String() string {
	switch {
	case r.IsZero():
		return ""
	case r.Ref == "":
		return "sha1:" + string(r.Commit)
	}
	return r.Ref + "@sha1:" + string(r.Commit)
}

// ParseRevision reads what String wrote. An empty string is the zero Revision.
func ParseRevision(s string) (Revision, error) {
	if s == "" {
		return Revision{}, nil
	}
	ref, id, ok := "", "", false
	if i := strings.LastIndex(s, "@sha1:"); i > 0 {
		ref, id, ok = s[:i], s[i+len("@sha1:"):], true
	} else {
		id, ok = strings.CutPrefix(s, "sha1:")
	}
	if !ok || !Commit(id).valid() {
		return Revision{}, failf(KindRef, "write it as main@sha1:<40 hexadecimal digits> or sha1:<40 hexadecimal digits>", "%q is not a revision", clean(s))
	}
	if why := badRefName(ref); ref != "" && why != "" {
		return Revision{}, failf(KindRef, "see git help check-ref-format", "%q is not a revision: the name of the ref %s", clean(s), why)
	}
	return Revision{Ref: ref, Commit: Commit(id)}, nil
}

// pick finds a ref in what the server listed.
func (r Ref) pick(adv *packp.AdvRefs) (Revision, error) {
	if r.SemVer != "" {
		return r.pickVersion(adv)
	}
	name := r.full()
	hash, ok := adv.References[name]
	if name == "HEAD" && adv.Head != nil {
		hash, ok = *adv.Head, true
	}
	if peeled, annotated := adv.Peeled[name]; annotated {
		hash = peeled
	}
	if ok {
		return Revision{Ref: r.short(), Commit: Commit(hash.String())}, nil
	}
	hint := "create it, or correct the name in the source"
	if other := (Ref{Branch: r.Tag, Tag: r.Branch}); r.Name == "" {
		if _, exists := adv.References[other.full()]; exists {
			hint = "there is a " + other.String() + ": use that field"
		}
	}
	return Revision{}, fail(KindRefNotFound, r.missing(adv), hint)
}

// missing lists what there is instead of r: the most similar names of the same sort.
func (r Ref) missing(adv *packp.AdvRefs) *RefNotFoundError {
	prefix := strings.TrimSuffix(r.full(), r.short())
	var names []string
	for full := range adv.References {
		if name, ok := strings.CutPrefix(full, prefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	e := &RefNotFoundError{Ref: r, Total: len(names)}
	const considered, shown = 2000, 5
	names = names[:min(len(names), considered)]
	distance := make(map[string]int, len(names))
	for _, name := range names {
		distance[name] = editDistance(name, r.short())
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	e.Exist = names[:min(len(names), shown)]
	return e
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
