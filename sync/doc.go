// Package sync decides when, why and in which order: it keeps every Mooring of a cluster.
//
// Start with (*Syncer).Once: one pass over one Mooring, from the newest commit to the corrected cluster. Around it,
// Reconciler answers to Kubernetes (finalizer, suspend, deletion, requeue), and RunAgent to the operating system
// (leader election, health, metrics). Everything else is a step of a pass.
//
// A pass works for one unit, and a unit's fault is its own: it has its own deadline, its own memory, and a panic
// below it becomes its own failure. What a unit remembers is only what spares work: after a restart the same is
// found out again from Git and from the cluster.
//
// Failures are *StageError: the stage decides the Ready reason and the retry. Fetching, planning and applying are
// tried again with growing pauses; rendering and checking wait for another commit, since trying again cannot cure
// them. A check differs from that in two ways. One that could not be made, because the cluster or a ConfigMap with policies could not be
// read, says nothing of the commit and is tried again soon. A refusal that something else in the cluster would cure, such as a Service that another team
// makes, is looked at again at each interval, without rendering. While the newest commit is refused, the one that was applied last is kept: drift is still corrected to it.
//
// When new commits are asked for and taken up is said by spec.schedule and spec.windows (when.go); how their times are found, by package schedule.
package sync
