package alarm

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Sent is a message as a receiver gets it.
type Sent struct {
	Title, Text string
	Message     *Message
}

// Played is a receiver, and the place where a status is written, for tests of time.
type Played struct {
	// Guard is held by a test, but while it lets time go by, and by what is played. A timer that wakes a goroutine does not order what it reads after what
	// the test wrote.
	Guard sync.Mutex
	// Send is told of each message.
	Send func(ctx context.Context, s Sent) error
	// Written is the status that was written last.
	Written v1alpha1.AlarmStatus
}

func (p *Played) receiver(context.Context, *v1alpha1.Alarm) (receiver, error) { return p, nil }

func (p *Played) send(ctx context.Context, j *job) error {
	m := messageOf(j.alarm.Name, j.batch.changes, j.batch.notes)
	title, text := j.words.say(m)
	return p.Send(ctx, Sent{title, text, m})
}

func (p *Played) write(_ context.Context, _, after *v1alpha1.Alarm) error {
	p.Guard.Lock()
	defer p.Guard.Unlock()
	p.Written = after.Status
	return nil
}

// NewPlayed is a Dispatcher without a cluster.
func NewPlayed(p *Played) *Dispatcher {
	d := New(Options{})
	d.receivers, d.statuses = p, p
	return d
}

// Set takes up an Alarm.
func (d *Dispatcher) Set(ctx context.Context, a *v1alpha1.Alarm) { d.set(ctx, a) }

// Remove drops an Alarm.
func (d *Dispatcher) Remove(key types.NamespacedName) { d.remove(key) }

// Seed makes a Mooring known, as from the cache at the start.
func (d *Dispatcher) Seed(m *v1alpha1.Mooring) { d.moorings[look(m).name] = look(m) }

// Masked is the text of an error without what is secret in an address.
func Masked(err error, address string) string { return masked(err, address).Error() }

// Skeleton of a message.
func Skeleton(s string) string { return skeleton(s) }

// Say fills templates in.
func Say(t *v1alpha1.AlarmTemplate, m *Message) (title, text string, err error) {
	w, err := newWords(t)
	title, text = w.say(m)
	return title, text, err
}

// SampleMessage has something of everything.
func SampleMessage() *Message { return example() }

// Open looks whether an address can be read.
func Open(address string) error {
	_, err := open(address)
	return err
}
