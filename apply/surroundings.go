package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Surroundings are what lives in the cluster around the objects of a Mooring, whoever they belong to: what a check needs to tell a
// host that is missing from one that somebody else provides. They are shared by all who ask, and changed by nobody.
type Surroundings struct {
	// Objects of all kinds, without what kubectl remembers in an annotation. Of managedFields there is left who wrote, and not which fields: us, and on
	// what is not ours of Istio's kinds everybody. One that did not change since the reading before is the same object at the same address.
	Objects []*unstructured.Unstructured
	// MetadataOnly are the kinds of which only metadata was asked for: no spec of a Pod and no content of a Secret is read.
	MetadataOnly map[schema.GroupKind]bool
	// Unread says of a kind why it is not known, wholly or in part. A kind that is not served has no objects and is not unread.
	Unread map[schema.GroupKind]string

	began time.Time
}

// neighbourhood keeps the last reading of an Applier, so that what is remembered of its objects elsewhere stays true.
type neighbourhood struct {
	turn chan struct{} // held by the one who reads, and guards the rest
	last *Surroundings
	kept map[schema.GroupKind]keptObjects
	// idle lets go of them: of a large cluster they are most of what an agent has in memory.
	idle *time.Timer
}

// keepFor is how long a reading is kept for the next one. A commit after that is checked as the first one is.
const keepFor = 2 * time.Minute

// keep a reading for the next ones. It is called by the one whose turn it is.
func (n *neighbourhood) keep(s *Surroundings, kept map[schema.GroupKind]keptObjects) {
	n.last, n.kept = s, kept
	if n.idle != nil {
		n.idle.Stop()
	}
	n.idle = time.AfterFunc(keepFor, n.letGo)
}

// letGo of the last reading, unless somebody reads at this moment.
func (n *neighbourhood) letGo() {
	select {
	case n.turn <- struct{}{}:
		n.last, n.kept = nil, nil
		<-n.turn
	default:
	}
}

// keptObjects are those of one kind.
type keptObjects map[version]*unstructured.Unstructured

// version is an object at one moment, as it was served.
type version struct {
	uid                         types.UID
	resourceVersion, apiVersion string
}

func versionOf(u *unstructured.Unstructured) version {
	return version{uid: u.GetUID(), resourceVersion: u.GetResourceVersion(), apiVersion: u.GetAPIVersion()}
}

// Surroundings reads what lives. The answer is never older than the question. Whoever asks while another reading is under way waits for its end, and
// then shares the next one with all who waited: any number of units that ask at the same moment cost two readings.
//
// The lists name no resourceVersion: the API server answers what is true at that moment (since Kubernetes 1.31 out of its cache, once it has made
// sure that the cache is as new), so that a Service that was made a second ago is seen. A list at version "0" may miss it.
//
// The error is not nil only when the API server does not say what it serves, or when ctx ends. Whatever else fails makes its kind unread.
func (a *Applier) Surroundings(ctx context.Context) (*Surroundings, error) {
	asked := time.Now()
	n := &a.neighbours
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("read what lives in the cluster: %w", context.Cause(ctx))
	}
	if n.last != nil && !n.last.began.Before(asked) {
		return n.last, nil
	}
	s, kept, err := a.survey(ctx, n.kept)
	if err != nil {
		return nil, fmt.Errorf("read what lives in the cluster: %w", err)
	}
	n.keep(s, kept)
	return s, nil
}
