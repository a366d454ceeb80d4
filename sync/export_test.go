package sync

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Stages of a Syncer that tests put their own in.
type Stages struct {
	Source   source
	Renderer renderer
	Checker  checker
	Surveyor surveyor
	Applier  applier
	Reader   reader
	Client   client.Client
	Slots    int // 0 for no limit
	Moorings lister
	Owners   lister
	Pusher   pusher
	Proposer proposer
}

// NewWith makes a Syncer of these stages.
func NewWith(s Stages) *Syncer {
	made := &Syncer{
		source: s.Source, renderer: s.Renderer, checker: s.Checker, surveyor: s.Surveyor, applier: s.Applier,
		reader: s.Reader, parent: parent{client: s.Client, tool: "mooring/test"}, moorings: s.Moorings, owners: s.Owners, pusher: s.Pusher, proposer: s.Proposer,
	}
	if s.Slots > 0 {
		made.slots = make(slots, s.Slots)
	}
	return made
}

// Next pause after an outcome.
func (s *Syncer) Next(m *v1alpha1.Mooring, out Outcome) time.Duration {
	return s.units.of(m).next(m, out)
}

// AsEdited is the Mooring that a pass is made for.
func (s *Syncer) AsEdited(ctx context.Context, m *v1alpha1.Mooring) *v1alpha1.Mooring {
	return s.asEdited(ctx, m)
}

// Note is what is kept of an outcome for others.
func (s *Syncer) Note(m *v1alpha1.Mooring, out Outcome) { s.units.of(m).note(out) }

// ParseKinds and FormatKinds are the book of an ApplySet.
func ParseKinds(s string) []schema.GroupKind      { return parseKinds(s) }
func FormatKinds(kinds []schema.GroupKind) string { return formatKinds(kinds) }

// Covers and Used are what a confirmation is good for.
func Covers(confirmation string, rev repos.Revision) (bool, int) {
	return word(confirmation).covers(rev)
}

func Used(confirmation string, before, now repos.Revision) bool {
	return word(confirmation).used(before, now)
}

// Interrupt is what a change of a Mooring does.
func (s *Syncer) Interrupt(m *v1alpha1.Mooring) { s.waits.interrupt(client.ObjectKeyFromObject(m)) }
