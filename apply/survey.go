package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// kindTimeout bounds the lists of one kind: a conversion webhook that does not answer costs that kind, and not the check.
const kindTimeout = 30 * time.Second

// neighbour is a kind that checks look at.
type neighbour struct {
	group, kind string
	// metadata alone is read.
	metadata bool
	// labels and fields narrow the list down.
	labels, fields string
}

func (n neighbour) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: n.group, Kind: n.kind}
}

// neighbours are the kinds that are known to matter. Whatever else is served in meshGroups is read, too.
func neighbours() []neighbour {
	all := []neighbour{
		{kind: "Namespace"},
		{kind: "Service"},
		// A selector is compared with the labels of the pods that run, and of those that a workload would make.
		{kind: "Pod", metadata: true, fields: "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)},
		{group: "apps", kind: "DaemonSet"},
		{group: "apps", kind: "Deployment"},
		{group: "apps", kind: "StatefulSet"},
		// That there is a Secret of a name is all that a gateway's certificate is asked for.
		{kind: "Secret", metadata: true},
		// The injection webhooks of every revision and tag of Istio carry this label, whoever installed them.
		{group: "admissionregistration.k8s.io", kind: "MutatingWebhookConfiguration", labels: revisionLabel},
	}
	for group, kinds := range meshGroups() {
		for _, kind := range kinds {
			all = append(all, neighbour{group: group, kind: kind})
		}
	}
	return all
}

// meshGroups are read whole. The kinds are named only so that they can be called unread when the API server does not say what it serves of their group.
func meshGroups() map[string][]string {
	return map[string][]string{
		"networking.istio.io": {
			"DestinationRule", "EnvoyFilter", "Gateway", "ProxyConfig", "ServiceEntry", "Sidecar", "VirtualService", "WorkloadEntry", "WorkloadGroup",
		},
		"security.istio.io":         {"AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"},
		"telemetry.istio.io":        {"Telemetry"},
		"extensions.istio.io":       {"TrafficExtension", "WasmPlugin"},
		"gateway.networking.k8s.io": {"BackendTLSPolicy", "GRPCRoute", "Gateway", "GatewayClass", "HTTPRoute", "ReferenceGrant", "TCPRoute", "TLSRoute"},
	}
}

// survey is a reading in the making.
type survey struct {
	*Applier
	before map[schema.GroupKind]keptObjects

	mu    sync.Mutex
	found *Surroundings                    // guarded by mu
	kept  map[schema.GroupKind]keptObjects // guarded by mu
}

// survey reads every neighbour that is served. What was kept of an object that is still the same takes its place.
func (a *Applier) survey(ctx context.Context, before map[schema.GroupKind]keptObjects) (*Surroundings, map[schema.GroupKind]keptObjects, error) {
	found := &Surroundings{MetadataOnly: make(map[schema.GroupKind]bool), Unread: make(map[schema.GroupKind]string), began: time.Now()}
	c, err := a.refresh(ctx) // a kind may have come since the last reading
	if err != nil {
		return nil, nil, err
	}
	s := &survey{Applier: a, before: before, found: found, kept: make(map[schema.GroupKind]keptObjects)}
	var g errgroup.Group
	g.SetLimit(a.concurrency)
	for _, n := range c.neighbours() {
		if n.metadata {
			found.MetadataOnly[n.groupKind()] = true
		}
		g.Go(func() error {
			s.read(ctx, n.groupKind(), func(ctx context.Context, old keptObjects) ([]*unstructured.Unstructured, error) {
				r, ok, err := c.kind(n.groupKind())
				if !ok || err != nil {
					return nil, err
				}
				return a.listAll(ctx, r, n, old)
			})
			return nil
		})
	}
	_ = g.Wait() // what failed is unread
	s.read(ctx, kindConfigMap, func(ctx context.Context, old keptObjects) ([]*unstructured.Unstructured, error) {
		return a.meshConfig(ctx, revisions(found.Objects), old)
	})
	if found.Unread[kindConfigMap] == "" {
		found.Unread[kindConfigMap] = "of all ConfigMaps only Istio's mesh configuration is read"
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	return found, s.kept, nil
}

// finder reads the objects of one kind. Those that are among the old ones take their place.
type finder func(ctx context.Context, old keptObjects) ([]*unstructured.Unstructured, error)

// read takes one kind in, or says why it is unread.
func (s *survey) read(ctx context.Context, gk schema.GroupKind, find finder) {
	ctx, cancel := context.WithTimeoutCause(ctx, kindTimeout, fmt.Errorf("no answer within %s", kindTimeout))
	defer cancel()
	var objects []*unstructured.Unstructured
	err := safely(func() (err error) {
		objects, err = find(ctx, s.before[gk])
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.found.Unread[gk] = err.Error()
		return
	}
	s.found.Objects = append(s.found.Objects, objects...)
	s.kept[gk] = make(keptObjects, len(objects))
	for _, u := range objects {
		s.kept[gk][versionOf(u)] = u
	}
}

// neighbours are those that are known, and whatever else the mesh's groups have.
func (c *catalog) neighbours() []neighbour {
	all, groups := neighbours(), meshGroups()
	known := make(map[schema.GroupKind]bool)
	for _, n := range all {
		known[n.groupKind()] = true
	}
	for gk := range c.kinds {
		if groups[gk.Group] != nil && !known[gk] {
			all = append(all, neighbour{group: gk.Group, kind: gk.Kind})
		}
	}
	return all
}

// listAll lists a kind, in pages, or all at once where the server does not keep its state for as long as that takes.
func (a *Applier) listAll(ctx context.Context, r resource, n neighbour, old keptObjects) ([]*unstructured.Unstructured, error) {
	list := a.listObjects
	if n.metadata {
		list = a.listMetadata
	}
	opts := metav1.ListOptions{LabelSelector: n.labels, FieldSelector: n.fields, Limit: pageSize}
	found, err := paged(ctx, opts, r, old, list)
	if apierrors.IsResourceExpired(err) {
		opts.Limit = 0
		return paged(ctx, opts, r, old, list)
	}
	return found, err
}

// lister gives one page and where the next one begins.
type lister func(ctx context.Context, r resource, opts metav1.ListOptions, old keptObjects) ([]*unstructured.Unstructured, string, error)

func paged(ctx context.Context, opts metav1.ListOptions, r resource, old keptObjects, list lister) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for {
		page, next, err := list(ctx, r, opts, old)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if opts.Continue = next; next == "" {
			return all, nil
		}
	}
}

func (a *Applier) listObjects(ctx context.Context, r resource, opts metav1.ListOptions, old keptObjects) ([]*unstructured.Unstructured, string, error) {
	page, err := a.objects.Resource(r.GVR()).List(ctx, opts)
	if err != nil {
		return nil, "", err
	}
	all := make([]*unstructured.Unstructured, 0, len(page.Items))
	for i := range page.Items {
		// Each is an allocation of its own: of a page, one that stays would keep all that go.
		all = append(all, old.or(&unstructured.Unstructured{Object: page.Items[i].Object}))
	}
	return all, page.GetContinue(), nil
}

func (a *Applier) listMetadata(ctx context.Context, r resource, opts metav1.ListOptions, old keptObjects) ([]*unstructured.Unstructured, string, error) {
	page, err := a.metadata.Resource(r.GVR()).List(ctx, opts)
	if err != nil {
		return nil, "", err
	}
	all := make([]*unstructured.Unstructured, 0, len(page.Items))
	for i := range page.Items {
		item := &page.Items[i]
		if u := old[version{uid: item.UID, resourceVersion: item.ResourceVersion, apiVersion: r.APIVersion()}]; u != nil {
			all = append(all, u)
			continue
		}
		item.ManagedFields = nil
		item.APIVersion, item.Kind = r.APIVersion(), r.Kind
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, "", fmt.Errorf("read metadata of %s: %w", r.GroupKind(), err)
		}
		all = append(all, trim(&unstructured.Unstructured{Object: content}))
	}
	return all, page.Continue, nil
}

// or gives what was kept of an object, or the object trimmed.
func (k keptObjects) or(u *unstructured.Unstructured) *unstructured.Unstructured {
	if known := k[versionOf(u)]; known != nil {
		return known
	}
	return trim(u)
}

// trim takes off what no check reads: much of the memory, and of a Secret the annotations in which tools keep what they wrote, contents included.
func trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	trimManagers(u)
	annotations := u.GetAnnotations()
	if len(annotations) == 0 {
		return u
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if u.GroupVersionKind().GroupKind() == kindSecret {
		maps.DeleteFunc(annotations, func(name, _ string) bool { return !strings.HasPrefix(name, "mooring.dev/") })
	}
	u.SetAnnotations(annotations)
	return u
}

// trimManagers leaves of managedFields who wrote: us, by which an object is known to be a Mooring's, and of those of Istio's kinds that are not, everybody.
func trimManagers(u *unstructured.Unstructured) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	delete(metadata, "managedFields")
	var kept []any
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		delete(entry, "fieldsV1")
		delete(entry, "fieldsType")
		if entry["manager"] == FieldManager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) {
			kept = []any{entry}
			break
		}
		if isIstioKind(render.IDOf(u)) {
			kept = append(kept, entry)
		}
	}
	if len(kept) > 0 {
		metadata["managedFields"] = kept
	}
}

// revisionLabel names the revision of Istio that something belongs to.
const revisionLabel = "istio.io/rev"

// revisions of Istio that the cluster has, "default" left out.
func revisions(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, u := range objects {
		if rev := u.GetLabels()[revisionLabel]; rev != "" && rev != "default" && u.GroupVersionKind().GroupKind() == kindMutating {
			all = append(all, rev)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// meshConfig reads the mesh's configuration, and that of each further revision, by their names.
func (a *Applier) meshConfig(ctx context.Context, revisions []string, old keptObjects) ([]*unstructured.Unstructured, error) {
	names := []string{"istio"}
	for _, rev := range revisions {
		names = append(names, "istio-"+rev)
	}
	var all []*unstructured.Unstructured
	for _, name := range names {
		u, err := a.objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("istio-system").Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, old.or(u))
	}
	return all, nil
}
