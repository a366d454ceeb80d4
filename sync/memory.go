package sync

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A start, or a large commit, needs several times the memory that the agent keeps. The collector of Go gives it back by and by, but of its own accord it collects only when
// as much again was allocated, which an agent at rest does not do for hours. So garbage is collected, and all that is free is given back, when the agent has
// come to rest. Before, the objects that nobody works with are put to rest: what is left of them are the bytes.

const (
	// restEvery is how often it is looked whether the agent has come to rest.
	restEvery = 10 * time.Second
	// restBytes are what an agent at rest allocates at most in that time.
	restBytes = 16 << 20
	// worthBytes is what must be there to be given back, and half of what lives at least, as much as the collector lets come together: to collect costs about a
	// millisecond and a half for each MiB that lives, and what passes without changes leave behind is not worth that.
	worthBytes = 32 << 20
	// stirBytes are what is allocated at least where somebody has worked with objects since they were put to rest.
	stirBytes = 2 << 20
)

// memoryKeeper gives memory back.
type memoryKeeper struct {
	// rest puts objects to rest, and tells how many bytes that lets go.
	rest func() int64
}

// rest puts the objects to rest that no pass works with.
func (s *Syncer) rest() (letGo int64) {
	return s.cache.Rest() + s.units.rest() + s.beside.rest()
}

// run until ctx ends.
func (k memoryKeeper) run(ctx context.Context) error {
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	heap := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	var before, rested uint64
	var owed int64 // what was let go and is not collected yet
	again := false // what is known of an object goes once that is collected, and is collected with what comes next
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		metrics.Read(heap)
		allocated, live, objects, free := heap[0].Value.Uint64(), heap[1].Value.Uint64(), heap[2].Value.Uint64(), heap[3].Value.Uint64()
		if allocated-before < restBytes {
			if allocated-rested >= stirBytes {
				owed, rested = owed+k.rest(), allocated
			}
			much := owed > worthBytes/2
			if much || again || objects+free > live+max(live/2, worthBytes) {
				debug.FreeOSMemory()
				owed, again = 0, much
			}
		}
		before = allocated
	}
}
