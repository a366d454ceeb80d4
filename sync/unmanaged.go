package sync

import (
	"context"
	"fmt"
	"sync"
	"time"
	"weak"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/unmanaged"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// What nobody manages is found in what is read for the check of a commit anyway. Without commits it is read anew once in lookEvery, once for all Moorings, by the
// first one that has a pass after that; the others find in memory what came of it. A pass that puts drift right has no time for it, and one that
// a person asks for reads anew: whoever has just deleted a stray object wants to see that it is gone.

const (
	// lookEvery is how old what is known may become.
	lookEvery = time.Hour
	// askedEvery is how old it may be for a person, who may ask for a pass of each of 200 Moorings.
	askedEvery = 5 * time.Second
)

// beside is what lived at the last reading, as far as it bears on others. It is safe for concurrent use.
type beside struct {
	mu   sync.Mutex
	of   weak.Pointer[apply.Surroundings] // guarded by mu, as is all below: the reading that it was made of
	last *unmanaged.Neighbourhood
	// read is when it was read, or tried to; zero before the first reading.
	read time.Time
	// asked is true when a person asked for a reading that was not made yet.
	asked bool
}

// due says, to one of those who ask, that it is time to read anew. What a person asks for too soon after a reading is owed to the next pass.
func (b *beside) due(asked bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = b.asked || asked
	every := lookEvery
	if b.asked {
		every = askedEvery
	}
	if time.Since(b.read) < every {
		return false
	}
	b.read, b.asked = time.Now(), false // also when the reading fails: it is not worth a storm
	return true
}

// rest lets go of what is not needed until somebody asks again.
func (b *beside) rest(idle bool) (letGo int64) { return b.known().Rest(idle) }

func (b *beside) known() *unmanaged.Neighbourhood {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// note takes a reading in, unless it has been.
func (b *beside) note(s *apply.Surroundings, owners func() (unmanaged.Owners, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil && b.of.Value() == s {
		return nil
	}
	all, err := owners()
	if err != nil {
		return err
	}
	b.last, b.of = unmanaged.Read(clusterOf(s, ""), all), weak.Make(s)
	b.read, b.asked = time.Now(), false
	return nil
}

// noteBeside takes a reading in. A preview has nobody to tell.
func (p *pass) noteBeside(ctx context.Context, s *apply.Surroundings) error {
	if p.owners == nil {
		return nil
	}
	return p.beside.note(s, func() (unmanaged.Owners, error) {
		var list v1alpha1.MooringList
		if err := p.owners.List(ctx, &list); err != nil {
			return unmanaged.Owners{}, fmt.Errorf("list Moorings: %w", err)
		}
		p.readBeside = true
		return Owners(list.Items, true), nil
	})
}

// Owners of objects are Moorings. all says that there are no others in the cluster.
func Owners(moorings []v1alpha1.Mooring, all bool) unmanaged.Owners {
	owners := unmanaged.Owners{Names: make(map[string]string, len(moorings)), All: all}
	for i := range moorings {
		m := &moorings[i]
		owners.Names[ID(m)] = m.Namespace + "/" + m.Name
	}
	return owners
}

// strays are what nobody manages and bears on a target, as long as neither it nor what is known of the cluster changes.
type strays struct {
	among  weak.Pointer[unmanaged.Neighbourhood]
	commit repos.Commit
	digest string
	found  []unmanaged.Finding
}

// lookBeside says what bears on the target that is in force. What cannot be read is no failure of the pass: the check says so where it matters, and what
// was known stays.
func (p *pass) lookBeside(ctx context.Context, t *target) {
	if p.owners == nil || t == nil || t.set == nil || ctx.Err() != nil {
		return
	}
	ask := p.mooring.Annotations[v1alpha1.ReconcileAnnotation]
	asked := ask != "" && ask != p.mooring.Status.LastHandledReconcileAt && !p.readBeside
	if (asked || !p.woken) && p.beside.due(asked) {
		if s, err := p.surveyor.Surroundings(ctx); err == nil {
			_ = p.noteBeside(ctx, s)
		}
	}
	n := p.beside.known()
	if n == nil {
		return
	}
	if s := p.unit.strays; s.among.Value() != n || s.commit != t.rev.Commit || s.digest != t.digest {
		wants := make([]*render.Content, 0, len(t.set.Objects))
		for _, o := range t.set.Objects {
			if o.Content != nil {
				wants = append(wants, o.Content)
			}
		}
		p.unit.strays = strays{among: weak.Make(n), commit: t.rev.Commit, digest: t.digest, found: n.Find(wants)}
	}
	p.out.LookedBeside, p.out.Unmanaged = true, p.unit.strays.found
}
