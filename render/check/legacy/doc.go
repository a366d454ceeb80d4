// Package legacy knows what earlier versions of Istio read and this one does not, and what it is called today.
//
// [Fields] finds retired fields in one object, [Rewrite] mends them in the text of a file, and [Kind] translates objects of kinds that are gone. A translation is exact when
// the proxies are told the same as the old Istio told them, or what the misplaced field plainly says; only those are ever written. For the others the reason is
// given, and YAML to start from.
//
// The facts are those of the protobufs and of pilot's readers in Istio 1.31: a field that is in a protobuf and that nobody reads is worse than one that is gone,
// because strict decoding lets it pass. Mixer's kinds went with Istio 1.8, those of authentication.istio.io and rbac.istio.io with 1.6
// (https://istio.io/latest/news/releases/).
package legacy
