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
// be applied is decided by the prune guard of package apply, which knows what was there before.
//
// # What it promises
//
// Nothing is written, no program is started, no request leaves the machine, no file outside of the file system is read.
// kustomize would do all of that if asked: it clones remote bases with git, fetches remote files over http, runs helm and
// plugins. So every kustomization and every plugin configuration is examined at the moment kustomize reads it (see vet.go), and
// refused with file and line before kustomize acts on it. Bases and components may be anywhere in the repository; other files
// must be at or below the folder of the kustomization that names them, which is kustomize's own rule.
//
// The same commit gives the same bytes. Objects come sorted by group, kind, namespace and name. An object that is there twice,
// also in two versions of its API, is refused with both places named. ${…} is text.
//
// Input is bounded by [Limits]: files, bytes, objects, nesting and time. Loops of bases, of symbolic links and of YAML aliases
// end in an error. A panic of the library is an error.
//
// # Errors
//
// What a user can mend is an [*Error]: file, line, cause, next step. Several may be joined; [Errors] takes them apart. An error
// of the file system itself other than "does not exist" is returned as it is, wrapped, and never taken for absence.
// No error text holds the content of a Secret; the unabridged text of kustomize's errors, which may, stays in the chain for
// errors.As and is not part of any Error().
package render
