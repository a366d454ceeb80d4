// Package flux runs Flux's kustomize-controller beside Mooring, so that a benchmark can measure both on one API server.
//
// # What runs
//
// The controller is built from its module, in a nested module of this folder, and runs as a process like an agent of Mooring. There is no source-controller: a
// GitRepository is made whose spec is suspended, and Publish does what source-controller would after a fetch. It packs the files into a tar.gz, serves it
// over http on loopback, and writes address, digest and revision into the object's status. So what Git takes is in no figure of Flux.
//
// # Its settings
//
// The defaults of release 1.9, and what Flux's page on vertical scaling advises (https://fluxcd.io/flux/installation/configuration/vertical-scaling):
// --concurrent=10, --requeue-dependency=5s, and its temporary files in memory, in /dev/shm where that exists; its resident memory is told without them. Leader election is off, and there is no
// notification-controller to tell of events. Its client has no rate limit, because the API server has priority and fairness. A
// Kustomization prunes and does not wait for health, as a Mooring with its defaults.
//
// Release 1.9.6 is the newest that builds with Go 1.26; 1.10 wants 1.27.
package flux
