// Package app turns an AppConfiguration, which says in a few lines how the mesh treats an application, into the Istio objects that
// it stands for.
//
// # The model
//
// [AppConfiguration] is the front end, in the words of KusionStack's design for Istio in its AppConfiguration model: attributes that users care for, with
// everything left out that can be derived. The functions of this package are the back end, and Istio's own API is the backbone. One file
// holds one kind: its attributes, each with what it becomes, and the function that makes it so. The object itself never reaches the cluster;
// its CRD is there so that kubectl explain appconfiguration.spec teaches it.
//
// # What is the same for all kinds
//
//   - Names: <app> for the one object of a kind, <app>-<key> for the others, where <app> is the name of the AppConfiguration; valid for RFC 1123,
//     and where that gets longer than 63 characters, cut and closed by a hash of the whole.
//   - The namespace is that of the AppConfiguration.
//   - Labels: app.kubernetes.io/name, /component and /managed-by, and over them those of the AppConfiguration. Its annotations are carried over,
//     those of kubectl and kustomize left out.
//   - A host without a dot is a Service in the namespace of the AppConfiguration and is written out as <host>.<namespace>.svc.<cluster domain>.
//   - Workloads are selected by spec.selector; where that is missing by what the application's Service in the same set selects; where that is
//     missing by app: <app>.
//   - patch changes what was generated, raw replaces it: see [Escape].
//
// # Errors
//
// An AppConfiguration is held against its own CRD, as the API server would: unknown fields, wrong types, values that are not allowed, rules
// between fields. What is found, there and later, is a [*render.Error] with the file and line of the field. All faults of all applications are told at once.
//
// +groupName=mooring.dev
// +versionName=v1alpha1
package app
