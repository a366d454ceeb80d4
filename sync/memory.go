package sync

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A start, or a large commit, needs several times the memory that the agent keeps. The collector of Go gives it back by and by, but of its own accord it collects only when
// as much again was allocated, which an agent at rest does not do for hours. So garbage is collected, and all that is free is given back, when the agent has
// come to rest.

const (
	// restEvery is how often it is looked whether the agent has come to rest.
	restEvery = 10 * time.Second
	// restBytes are what an agent at rest allocates at most in that time.
	restBytes = 16 << 20
	// worthBytes is what must be there to be given back, and half of what lives at least, as much as the collector lets come together: to collect costs about a
	// millisecond and a half for each MiB that lives, and what passes without changes leave behind is not worth that.
	worthBytes = 32 << 20
)

// giveMemoryBack until ctx ends.
func giveMemoryBack(ctx context.Context) error {
	ticker := time.NewTicker(restEvery)
	defer ticker.Stop()
	heap := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	var before uint64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		metrics.Read(heap)
		allocated, live, objects, free := heap[0].Value.Uint64(), heap[1].Value.Uint64(), heap[2].Value.Uint64(), heap[3].Value.Uint64()
		if allocated-before < restBytes && objects+free > live+max(live/2, worthBytes) {
			debug.FreeOSMemory()
		}
		before = allocated
	}
}
