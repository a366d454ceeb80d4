// Package mesh turns an IstioOperator into the objects of the Istio installation that it describes.
//
// # What it does
//
// [Expander] replaces every object of kind IstioOperator (install.istio.io/v1alpha1) by what istioctl manifest generate writes for it: with Istio's own
// library, and with the charts and profiles of Istio 1.31, which are part of the program. All of the API works: profile, hub, tag, revision, components
// with their k8s settings and k8s.overlays, meshConfig, values, unvalidatedValues, compatibilityVersion, and values.revisionTags. CRDs come along, as
// with istioctl. Environments differ by kustomize patches on the IstioOperator; kustomize merges it as JSON, so lists such as
// ingressGateways are replaced as a whole.
//
// Several IstioOperators stand side by side, say for two revisions, or with the profile empty for gateways alone. When two of them give the same object
// (the CRDs, with two control planes: switch them off in one with components.base.enabled), package render refuses it and names both. metadata.name and
// status mean nothing; metadata.namespace means nothing either, as in istioctl, where values.global.istioNamespace says where things go.
//
// # Hub, tag and version
//
// Istio's sources say hub registry.istio.io/testing, tag latest and chart version 1.0.0, and a release of Istio writes its own over that. The charts
// here are those of the branch release-1.31, shortly before 1.31.0. A pseudo-version has no images, so the default is [DefaultTag], the newest
// patch of that minor when this was written and the one whose API package render/check reads; patches of one minor run with each other's charts. The hub is
// where Istio publishes releases. spec.hub and spec.tag win over the defaults, values.global.hub and tag over those, as in
// istioctl. The tags latest and unknown and hubs with builds for tests are refused: what is installed would not depend on the commit alone.
//
// # Differences from istioctl manifest generate
//
//   - Hub and tag, as above, and [DefaultVersion] in the labels app.kubernetes.io/version and helm.sh/chart, as in a release. The label install.operator.istio.io/owning-resource
//     has the name of the IstioOperator, as with istioctl install, not unknown.
//   - failurePolicy: see Webhooks.
//   - installPackagePath, and profiles that are files, are refused: both name files of the machine that renders.
//   - Unknown fields of meshConfig are refused; istioctl overlooks them. What is newer than the API goes into spec.unvalidatedValues.
//   - A patch of k8s.overlays that cannot be done is an error, and an overlay that matches no object a [render.Warning]; istioctl overlooks both. A value
//     that is text and reads as a mapping of several keys is refused, because Istio may take any one of the keys.
//   - A tag that is a number with a point and a revision that is a number are refused: 1.30 is 1.3, and Istio's charts take no number for a name.
//   - Nothing is asked of a cluster, as in istioctl without --cluster-specific. On GKE write values.global.platform: gke and what goes with it.
//
// # Webhooks
//
// The charts render istiod's validating webhook with failurePolicy Ignore. Istiod writes the caBundle, and turns Ignore into Fail once it answers.
// Whoever applies the charts again turns it back, and for a moment nothing is validated. So Ignore is left out here, whatever asked for it, and the field
// is istiod's: where the webhook exists, server-side apply leaves the policy as it is; where it is created, the API server's default is Fail.
// The price is that a new cluster refuses Istio's objects until istiod answers, which package apply tries again, where with Ignore it would take wrong
// ones. An explicit Fail stays (unvalidatedValues: {base: {validationFailurePolicy: Fail}}). A caBundle is rendered only where the
// author gives one, and with it the charts render Fail themselves and istiod keeps its hands off.
//
// That webhook is for objects with the label istio.io/rev of its revision. The one for all others, istiod-default-validator, is not in what istioctl manifest
// generate writes: istioctl install makes it afterwards, from what it finds in the cluster, with the injection of the tag default. Here it is part of the installation
// whose spec.values.defaultRevision has its own revision ("default" where it has no name); the injection comes with revisionTags: [default] where
// the revision has a name. Without it, the API server takes Istio's objects from kubectl unchecked.
//
// # Namespaces
//
// As with istioctl manifest generate, the Namespace of an installation is not part of it: it has labels that are the author's, and often
// another owner. When none of that name is among the objects, a Warning says so.
//
// # What it promises
//
// The same IstioOperator gives the same objects: no cluster, no network, no clock, no environment, nothing random, no order of a map. Istio's library takes the
// names of files alone; the IstioOperator is handed to it through a pipe (/dev/fd), so nothing is written to a disk. An
// IstioOperator may have 1 MiB and 64 levels. A panic of Istio or Helm is an error ([Panic]). Many may be rendered at once. When the
// context is done, Expand returns, and the library ends by itself a moment later.
//
// What a user can mend is a [render.Error] with file, line, field and next step.
package mesh
