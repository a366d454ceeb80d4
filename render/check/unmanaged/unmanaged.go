// Package unmanaged finds what nobody keeps and what bears on that which a Mooring keeps: a forgotten EnvoyFilter that patches the
// proxies of its workloads, a second VirtualService for one of its hosts.
//
//	n := unmanaged.Read(cluster, unmanaged.Owners{Names: map[string]string{id: "mesh/prod"}, All: true})
//	for _, f := range n.Find(unmanaged.Owned(cluster)[id]) { fmt.Println(f.Object, f.Why) }
//
// It asks no cluster and no proxy: objects go in, findings come out. [Read] looks at all that lives, once; [Neighbourhood.Find] is
// cheap, and is asked for each Mooring.
//
// # What is unmanaged
//
// An object of Istio's groups is managed when it carries the ApplySet label of a Mooring and a field that our field manager applied: a copy of one of
// ours, label included, is not. Nor are these reported:
//
//   - what Istio's installation brings (the labels of its charts and of its operator);
//   - what has a controller for an owner, such as the VirtualService that Flagger makes for a Canary, or what istiod makes for a Gateway of the Gateway
//     API;
//   - what says mooring.dev/reconcile: disabled. Somebody knows of it.
//
// What another tool keeps, such as Helm, is reported: no Mooring knows what it will do next.
//
// # What bears on a Mooring
//
// Its hosts are those that its Services, VirtualServices, DestinationRules, ServiceEntries and Gateways name. Its workloads are those that it has
// itself, those behind a Service of one of its hosts, whoever has the Service, and the gateways through which its hosts are served. An object bears on a
// host by naming it, and on a workload by its selector, its namespace, or by lying in the mesh's root namespace. For kinds of which one object wins
// (DestinationRule and VirtualService with a star, PeerAuthentication, Sidecar), one that loses to an object of the Mooring does not bear on it.
//
// A kind that could not be read is taken to have no objects: the reader says so in its own place.
package unmanaged

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// Finding is one object that nobody manages, and what of one Mooring it bears on.
type Finding struct {
	Object render.ID
	// Hosts and Workloads (Kind/namespace/name) that it bears on, sorted.
	Hosts, Workloads []string
	// Why is one sentence, without a full stop: what the object does to them, and how it comes to do so.
	Why string
	// Writers are the field managers that wrote to the object, the last one first. A status is not counted.
	Writers []Writer
	Created time.Time
}

// Writer is a field manager.
type Writer struct {
	Manager   string
	Operation string
	// Time of its last write; zero where the API server does not say.
	Time time.Time
}

// Owners are the Moorings of a cluster.
type Owners struct {
	// Names by ApplySet ids.
	Names map[string]string
	// All says that there are no others: then an object of another ApplySet is unmanaged. Otherwise it may be that of a Mooring that the
	// reader may not see.
	All bool
}

const (
	partOfLabel         = "applyset.kubernetes.io/part-of"
	fieldManager        = "mooring"
	reconcileAnnotation = "mooring.dev/reconcile"
)

// OwnerOf gives the ApplySet id that an object belongs to: its label counts only beside a field that Mooring applied.
func OwnerOf(u *unstructured.Unstructured) string {
	id := u.GetLabels()[partOfLabel]
	if id == "" || !slices.ContainsFunc(writers(u), func(w Writer) bool {
		return w.Manager == fieldManager && w.Operation == string(metav1.ManagedFieldsOperationApply)
	}) {
		return ""
	}
	return id
}

// writers of an object, the last one first.
func writers(u *unstructured.Unstructured) []Writer {
	entries, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	var all []Writer
	for _, entry := range items(entries) {
		if text(entry, "subresource") == "status" {
			continue
		}
		w := Writer{Manager: text(entry, "manager"), Operation: text(entry, "operation")}
		w.Time, _ = time.Parse(time.RFC3339, text(entry, "time"))
		all = append(all, w)
	}
	slices.SortStableFunc(all, func(x, y Writer) int { return cmp.Or(y.Time.Compare(x.Time), cmp.Compare(x.Manager, y.Manager)) })
	return all
}

// excused is true for an object that somebody answers for, although no Mooring does.
func excused(u *unstructured.Unstructured) bool {
	if u.GetAnnotations()[reconcileAnnotation] == "disabled" || metav1.GetControllerOfNoCopy(u) != nil {
		return true
	}
	labels := u.GetLabels()
	for _, key := range []string{
		"operator.istio.io/component", "operator.istio.io/managed", "install.operator.istio.io/owning-resource", "gateway.istio.io/managed",
	} {
		if labels[key] != "" {
			return true
		}
	}
	return labels["app.kubernetes.io/part-of"] == "istio"
}

// inMesh is true for the kinds that are judged.
func inMesh(id render.ID) bool {
	switch id.Group {
	case "networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io":
		return true
	}
	return false
}
