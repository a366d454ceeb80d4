// Package render turns a path of a commit into the complete list of Kubernetes objects that it stands for.
//
// # What it reads
//
// [Renderer.Render] is given an [io/fs.FS] and a folder in it. A folder with a kustomization.yaml (or kustomization.yml, or
// Kustomization) is built by kustomize, in process. Any other folder is read as plain YAML: every *.yaml, *.yml and *.json file
// below it, at any depth; files and folders whose name begins with a dot are skipped. Several documents in a file, documents
// that hold nothing, and lists (kind List, or any …List with items) are fine. A folder with its own kustomization below such a
// plain folder is an error: rendering it would apply bases and all the overlays side by side, skipping it would leave
// something out, and only the user knows which of them is meant. Objects annotated config.kubernetes.io/local-config are
// left out in both cases, as kustomize does. An empty folder and `resources: []` are a Set without objects; whether that may
// be applied is decided by the prune guard of package apply, which knows what was there before. An empty kustomization file is an
// error, as it is for kustomize. A file that was read for objects and holds none is legal, and named in Set.Hollow: nobody can tell an intention from a file that
// was lost on its way, and a smaller set means that something is pruned.
//
// Scalars mean what they mean to kubectl: in plain YAML that is YAML 1.1 (yes is true), as for kubectl apply -f, and through
// kustomize it is what kustomize makes of them (yes is text), as for kubectl apply -k. Labels and annotations that are
// no text stay what they are, for package check to refuse. ${…} is text.
//
// Symbolic links are followed within the file system, when it is an [io/fs.ReadLinkFS]; one that leads out of it is an error, as is
// a submodule. Origins and Files name the real file.
//
// # What it promises
//
// Nothing is written, no program is started, no request leaves the machine, no file outside of the file system is read.
// kustomize would do all of that if asked: it clones remote bases with git, fetches remote files over http, runs Helm and
// plugins. So every kustomization and every configuration of a plugin is examined before kustomize can act on it (see vet.go), and
// refused with file and line. Bases and components may be anywhere in the repository; other files must be at or below
// the folder of the kustomization that names them, which is kustomize's own rule. Keys that are there twice are refused, which
// kustomize mostly takes: it forgets one of them, and what that had listed would be pruned. Else a kustomization gives what kustomize
// build gives, byte for byte, but for two things. kustomize renames objects, and leaves the references of Istio's kinds to them behind, so that
// they lead nowhere; here they follow (see references.go and referencestable.go). Where nothing is renamed there is no difference. And kustomize knows
// nothing of AppConfiguration, so that a patch would replace its lists; here it merges those whose items have names, each of which keeps its place (see
// schema.go and schemaorder.go).
//
// The same commit gives the same bytes. Objects come sorted by group, kind, namespace and name. An object that is there twice,
// also in two versions of its API, is refused with both places named.
//
// Input is bounded by [Limits]: files, bytes, objects, nesting and time. Loops of bases, of symbolic links, of YAML aliases and of schemas
// end in an error. A panic of a library is an error, and so is its log.Fatal (see guard.go). What is not bounded beforehand is the memory in
// which kustomize multiplies bounded input, as with a large annotation for all of many objects: only the result is measured. A build that
// is over its time is left alone, and ends with the next file that it wants to read.
//
// kustomize writes warnings about deprecated fields to standard error, without a way to tell it not to; about patchesStrategicMerge and patchesJson6902 once
// for every part of a divided build that has one.
//
// # What it costs
//
// kustomize's time grows with the square of the objects of one build. A build of 8 objects or more is therefore divided into parts of some dozens, on
// all processors that are free, wherever the kustomizations act on each object alone: resources, bases, namespace, labels, commonLabels,
// commonAnnotations, images, replicas, patches of all three kinds and sortOptions. Any other field, patches that may change what an object is called, and annotations
// that speak to kustomize itself mean that the build is done undivided. So does whatever goes wrong in a divided build, so that its errors are kustomize's
// own for the whole. That both give the same is what the tests of random kustomizations are for; see division for why.
//
// With a [Cache], a commit costs what it changes: nothing is read when it changes nothing that the render looked at, and one part is built when it changes one
// object.
//
// Who keeps a Set or a Cache for long calls Rest now and then. What is left of the objects are their bytes, a tenth of the memory, and the next who wants to see
// one gets it made again, in some microseconds. See [Content].
//
// # Errors
//
// What a user can mend is an [*Error]: file, line, cause, next step. Several may be joined, up to 20; [Errors] takes them apart. An error
// of the file system itself other than "does not exist" is returned as it is, wrapped, and never taken for absence. The same goes for
// the end of the context.
//
// No error text holds the content of a Secret. The unabridged text of kustomize's errors, which may, stays in the chain for errors.As and is
// not part of any Error().
package render
