package sync

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mooring-dev/mooring/render"
)

// A start, or a large commit, needs several times the memory that the agent keeps. When the agent has come to rest, two things are done about that.
//
// What is kept is made small. Of an object that nobody works with the bytes are left ([render.Set.Rest]); where nobody asked for it for a minute, that does not wait
// until the agent rests. And what is remembered of many objects is moved together ([render.Gather]): it was made among much that is garbage by now, and Go never moves
// what lives, so a few bytes of it would hold a whole page each.
//
// Then garbage is collected, and all that is free is given back. The collector does so by and by, but of its own accord it begins only when as much was allocated
// again as lives, which takes an agent at rest an hour.

const (
	// restEvery is how often it is looked whether the agent has come to rest.
	restEvery = 10 * time.Second
	// restBytes are what an agent at rest allocates at most in that time.
	restBytes = 16 << 20
	// busyLooks is how many looks lie between two in which an agent that does not come to rest puts to rest what is idle: a minute.
	busyLooks = 6
	// stirBytes are what is allocated at least where somebody has worked with objects.
	stirBytes = 2 << 20
	// worthBytes is what must be there to be given back, and half of what lives at least, as much as the collector lets come together: to collect costs about a
	// millisecond and a half for each MiB that lives, and what passes without changes leave behind is not worth that.
	worthBytes = 32 << 20
)

// heap is what the runtime tells.
type heap struct {
	allocated uint64 // since the start
	live      uint64 // after the last collection
	objects   uint64 // that live, or are not collected yet
	free      uint64 // and not given back
}

func readHeap() heap {
	all := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(all)
	return heap{all[0].Value.Uint64(), all[1].Value.Uint64(), all[2].Value.Uint64(), all[3].Value.Uint64()}
}

// memoryKeeper decides when.
type memoryKeeper struct {
	// rest makes small what is kept, or of that what is idle alone, and tells about how many bytes that lets go.
	rest func(idle bool) int64

	busy   int    // looks since it was at rest
	before uint64 // allocated when it was looked last
	rested uint64 // allocated when rest was called last
	owed   int64  // let go since the last collection
	lived  uint64 // live before the collection that was asked for last; 0 when none was
}

// run until ctx ends.
func (k *memoryKeeper) run(ctx context.Context) error {
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if k.look(readHeap()) {
			debug.FreeOSMemory()
		}
	}
}

// look whether the agent has come to rest, and whether it is time to collect.
func (k *memoryKeeper) look(h heap) (collect bool) {
	atRest := h.allocated-k.before < restBytes
	k.before = h.allocated
	if !atRest {
		if k.busy++; k.busy%busyLooks == 0 {
			k.owed += k.rest(true)
		}
		return false
	}
	k.busy = 0
	if h.allocated-k.rested >= stirBytes {
		k.owed, k.rested = k.owed+k.rest(false), h.allocated
	}
	// What is known of objects goes once they are collected, and is collected the next time.
	more := k.lived > h.live+worthBytes/2
	k.lived = 0
	if k.owed < worthBytes && !more && h.objects+h.free <= h.live+max(h.live/2, worthBytes) {
		return false
	}
	k.owed, k.lived = 0, h.live
	return true
}

// rest puts all objects to rest, or those alone that are idle, and begins another round.
func (s *Syncer) rest(idle bool) (letGo int64) {
	defer render.NextRound()
	return s.cache.Rest(idle) + s.units.rest(idle) + s.beside.rest(idle)
}

// slim takes from an object that comes into the agent's cache who wrote what, of which nobody asks, and moves the rest of its texts together: it was decoded among
// much that goes, and stays.
func slim(o any) (any, error) {
	object, err := meta.Accessor(o)
	if err != nil || object.GetManagedFields() == nil { // no object, or one that was here before, which others read
		return o, nil
	}
	object.SetManagedFields(nil)
	render.GatherIn(o)
	return o, nil
}
