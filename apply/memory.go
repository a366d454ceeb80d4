package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render"
)

// memory is what makes rest cost nothing: as long as an object has the resourceVersion that it had when we last looked, and Git wants the
// same, there is nothing to look at. It may be lost at any time, and then everything is looked at once.
type memory struct {
	mu    sync.Mutex
	units map[string]map[render.ID]memo // by ApplySet id
}

// memo is one object as it was found or left.
type memo struct {
	uid             types.UID
	resourceVersion string
	// hash of the form that Git wanted. An empty one means that it was not applied.
	hash   string
	health Health
	// checks by which the health was found; see HealthChecks.Key.
	checks string
}

func (m *memory) recall(unit string, id render.ID) (memo, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.units[unit][id]
	return found, ok
}

func (m *memory) remember(unit string, id render.ID, what memo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.units == nil {
		m.units = make(map[string]map[render.ID]memo)
	}
	if m.units[unit] == nil {
		m.units[unit] = make(map[render.ID]memo)
	}
	m.units[unit][id] = what
}

// drop forgets one object.
func (m *memory) drop(unit string, id render.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units[unit], id)
}

// keep forgets every object of the unit that is not among these.
func (m *memory) keep(unit string, among map[render.ID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.units[unit] {
		if !among[id] {
			delete(m.units[unit], id)
		}
	}
}

func (m *memory) forget(unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.units, unit)
}
