package sync

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// wholeKind is how many objects of a kind may not go at once without a word, when no object of that kind is left in Git. Two, so that the only
// Gateway of a mesh can be retired by a commit like any other.
const wholeKind = 2

// word is the value of the annotation by which a human lets a held plan through: a revision, or the id of its commit, and perhaps
// ",deletes=N". It counts for one revision, and once: the agent takes it away when that revision is in force, or another one has come into force
// meanwhile, so that no word from long ago meets a plan that nobody looked at. With a number it counts for no more deletes than that: what
// is planned for one revision grows when spec.path changes, or when another commit was in force in between.
type word string

// covers says whether the word is for this revision, and how many deletes it allows; 0 for any number.
func (w word) covers(rev repos.Revision) (confirmed bool, deletes int) {
	id, number, bounded := strings.Cut(string(w), ",deletes=")
	if id == "" || id != rev.String() && id != string(rev.Commit) {
		return false, 0
	}
	if !bounded {
		return true, 0
	}
	deletes, err := strconv.Atoi(number)
	return err == nil && deletes > 0, deletes
}

// used says whether the word is of no use any more, now that this revision is in force after the one before.
func (w word) used(before, now repos.Revision) bool {
	if w == "" {
		return false
	}
	id, _, _ := strings.Cut(string(w), ",deletes=")
	return id == now.String() || id == string(now.Commit) || before.Commit != now.Commit
}

// withoutWord takes the annotation away, if it is still the same.
func withoutWord(m *v1alpha1.Mooring, name string) client.Patch {
	path := "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1")
	value, _ := json.Marshal(m.Annotations[name]) // a string; %q is no JSON for every text that a person writes
	return client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"test","path":%[1]q,"value":%[2]s},{"op":"remove","path":%[1]q}]`, path, value))
}
