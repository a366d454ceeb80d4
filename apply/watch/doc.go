// Package watch knows at every moment which objects carry a label, and in which version.
//
// For each kind that somebody wants there is one metadata watch, selected by the label, however many want it (Watcher.Want). What is kept of an object is
// what tells whether it moved: its UID, its versions, and a digest of the metadata that people write. So ten thousand objects take a few megabytes.
//
// # What is told
//
// Each change, once, with the version before and after (Change). Quiet is one in which nothing but a subresource was written, such as status: for kinds
// that have a generation that is said by the generation and by managedFields; a kind without one (ConfigMap, Secret, Service) has no quiet changes,
// because the server does not say what changed. An object that loses the label is told as Gone, like one that is deleted: the watch does not tell them apart.
//
// # When it breaks
//
// Nothing is taken for gone because a watch is broken, denied, or too old (410 Gone): the reflector of client-go takes it up again, with growing pauses, and
// compares what it then finds with what there was. Until then Objects says that it does not know, and whoever needs to know asks the server. Broken is told
// once when it begins and once when it is over.
//
// A connection that died without a word is noticed by the HTTP/2 ping of client-go, within 45 seconds; for so long what is known can be old.
package watch
