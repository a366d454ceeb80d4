package apply

import (
	"sync"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/apply/watch"
	"github.com/mooring-dev/mooring/render"
)

// memory is what makes rest cost nothing: as long as an object has the resourceVersion that it had when we last looked, and Git wants the
// same, there is nothing to look at. It may be lost at any time, and then everything is looked at once.
type memory struct {
	mu    sync.Mutex
	units map[string]*memories // by ApplySet id
}

// memories of one unit.
type memories struct {
	objects map[render.ID]memo
	// scattered is true when something was remembered since the texts were gathered.
	scattered bool
	// runs is how many runs write at this moment. What the watch tells meanwhile waits for their end: it may be about a write that was not answered yet.
	runs  int
	heard []heard
}

type heard struct {
	id     render.ID
	change watch.Change
}

// memo is one object as it was found or left. It is as small as a map wants its elements to be so that it holds them itself: 128 bytes.
type memo struct {
	uid             types.UID
	resourceVersion string
	// hash of the form that Git wanted. An empty one means that it was not applied.
	hash string
	// status and message are the health that was found. The ID is the memory's own: one of the server's answer would keep all texts of that.
	status  status.Status
	message string
	// checks by which the health was found; see HealthChecks.Key.
	checks string
	// stale is true when the status has changed since the health was found. All else is as it was.
	stale bool
	// drifted is the version in which a plan found it drifted and held it back: that its status changes is no news either.
	drifted string
}

func (m *memory) recall(unit string, id render.ID) (memo, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.units[unit] == nil {
		return memo{}, false
	}
	found, ok := m.units[unit].objects[id]
	return found, ok
}

func (m *memory) remember(unit string, id render.ID, what memo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(unit)
	u.objects[id], u.scattered = what, true
}

// rest moves what is remembered together; see [render.Gather].
func (m *memory) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if !u.scattered {
			continue
		}
		ids, memos := make([]render.ID, 0, len(u.objects)), make([]memo, 0, len(u.objects))
		for id, known := range u.objects {
			ids, memos = append(ids, id), append(memos, known)
		}
		var texts []*string
		for i := range memos {
			known := &memos[i]
			texts = append(texts, &ids[i].Name, (*string)(&known.uid), &known.resourceVersion, &known.message, &known.drifted)
		}
		render.Gather(texts)
		u.objects, u.scattered = make(map[render.ID]memo, len(ids)), false
		for i, id := range ids {
			u.objects[id] = memos[i]
		}
	}
}

// of a unit; called with mu held.
func (m *memory) of(unit string) *memories {
	if m.units == nil {
		m.units = make(map[string]*memories)
	}
	if m.units[unit] == nil {
		m.units[unit] = &memories{objects: make(map[render.ID]memo)}
	}
	return m.units[unit]
}

// drop forgets one object.
func (m *memory) drop(unit string, id render.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of(unit).objects, id)
}

// keep forgets every object of the unit that is not among these.
func (m *memory) keep(unit string, among map[render.ID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := m.of(unit).objects
	for id := range objects {
		if !among[id] {
			delete(objects, id)
		}
	}
}

func (m *memory) forget(unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, unit)
}

// newer are the objects of a kind that were remembered in a later version than the watch has told of.
func (m *memory) newer(unit string, gk schema.GroupKind, than string) map[render.ID]memo {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[render.ID]memo)
	if m.units[unit] == nil {
		return found
	}
	for id, known := range m.units[unit].objects {
		if id.Group == gk.Group && id.Kind == gk.Kind && isNewer(known.resourceVersion, than) {
			found[id] = known
		}
	}
	return found
}

// begin says that a run writes from now on.
func (m *memory) begin(unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(unit).runs++
}

// end says that the run is over, and whether anything moved meanwhile that it did not move.
func (m *memory) end(unit string) (moved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(unit)
	if u.runs = max(u.runs-1, 0); u.runs > 0 { // a unit that was forgotten meanwhile has none
		return false
	}
	for _, h := range u.heard {
		moved = u.judge(h.id, h.change) || moved
	}
	u.heard = nil
	return moved
}

// moved says whether a change is one that nobody here has made, and that may be more than one of the status.
func (m *memory) moved(unit string, id render.ID, c watch.Change) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.units[unit]
	switch {
	case u == nil:
		return false // nobody has planned for it yet
	case u.runs > 0:
		u.heard = append(u.heard, heard{id, c})
		return false
	default:
		return u.judge(id, c)
	}
}

// judge a change. One of the status alone is taken note of.
func (u *memories) judge(id render.ID, c watch.Change) (moved bool) {
	known, ok := u.objects[id]
	switch {
	case !ok:
		return !c.Gone && !c.Quiet
	case known.resourceVersion == c.Version || isNewer(known.resourceVersion, c.Version):
		return c.Gone && known.resourceVersion == c.Version
	case c.Gone:
		return known.uid == c.UID
	case c.Quiet && known.uid == c.UID && known.resourceVersion == c.Before:
		known.resourceVersion, known.stale = c.Version, true
		u.objects[id] = known
		return false
	case c.Quiet && known.uid == c.UID && known.drifted != "" && known.drifted == c.Before:
		known.drifted = c.Version
		u.objects[id] = known
		return false
	default:
		return true
	}
}

// held takes note of the version in which an object is left as it drifted.
func (m *memory) held(unit string, id render.ID, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(unit)
	if known, ok := u.objects[id]; ok {
		known.drifted = version
		u.objects[id] = known
	}
}
