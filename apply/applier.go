package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply/watch"
	"github.com/mooring-dev/mooring/render"
)

// Options of an Applier. The zero value is right for production.
type Options struct {
	// Concurrency is the number of requests at a time for one call; 0 means 32.
	Concurrency int
	// GateTimeout bounds the wait for definitions to be established, for namespaces to be active, for a new kind to be
	// served and for a replaced object to be gone; 0 means a minute.
	GateTimeout time.Duration
	// Wake is told the name of a unit of which an object moved without our doing. It must not block, and may be told more often than something drifted. With
	// it the Applier keeps a watch for each kind that its units have objects of (see Watch), and plans without listing what has not moved.
	Wake func(unit string)
	// WatchBroken is told of a kind whose watch does not work, and, with nil, when it works again. The units of that kind are listed at each plan meanwhile.
	WatchBroken func(kind schema.GroupKind, err error)
}

// Applier plans and runs against one cluster with one identity. It is safe for concurrent use, and units do
// not wait for each other.
type Applier struct {
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.ServerResourcesInterfaceWithContext

	concurrency int
	gateTimeout time.Duration

	memory     memory
	audits     audits
	neighbours neighbourhood
	watch      *watch.Watcher // nil when nobody wants to be woken
	woken      func(unit string)

	mu      sync.Mutex
	catalog *catalog          // guarded by mu; nil until somebody asked
	names   map[string]string // guarded by mu: the Mooring of an ApplySet id, for messages
}

// Rest moves what is remembered between passes together, away from what only a pass needed. It may be called at any time.
func (a *Applier) Rest() {
	a.memory.rest()
	if a.watch != nil {
		a.watch.Rest()
	}
}

// New makes an Applier that uses cfg's identity for every request.
func New(cfg *rest.Config, opts Options) (*Applier, error) {
	cfg = rest.CopyConfig(cfg)
	// The API server's own priority and fairness says how fast we may be; it answers 429 with Retry-After, which client-go obeys.
	cfg.QPS = -1
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandler = rest.NoWarnings{}
	}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return candid{next} })
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	objects, err := dynamic.NewForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), client)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(cfg, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	a := &Applier{
		objects: objects, metadata: meta, discovery: disco,
		concurrency: opts.Concurrency, gateTimeout: opts.GateTimeout,
		names:      make(map[string]string),
		neighbours: neighbourhood{turn: make(chan struct{}, 1)},
	}
	if a.concurrency <= 0 {
		a.concurrency = 32
	}
	if a.gateTimeout <= 0 {
		a.gateTimeout = time.Minute
	}
	if opts.Wake != nil {
		a.woken = opts.Wake
		a.watch = watch.New(meta, watch.Options{Label: PartOfLabel, Changed: a.changed, Gather: render.Gather, Broken: func(k watch.Kind, err error) {
			if opts.WatchBroken != nil {
				opts.WatchBroken(schema.GroupKind{Group: k.Group, Kind: k.Name}, err)
			}
		}})
	}
	return a, nil
}

// Forget drops what is remembered of a unit. The next plan looks at each of its objects.
func (a *Applier) Forget(id string) {
	a.memory.forget(id)
	a.audits.forget(id)
	if a.watch != nil {
		a.watch.Want(id, nil)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, id)
}

func (a *Applier) meetUnit(u Unit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names[u.ID] = u.Name
}

// name of the Mooring of an ApplySet id, where it was worked for; else empty.
func (a *Applier) name(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.names[id]
}

func (a *Applier) resource(r resource, namespace string) dynamic.ResourceInterface {
	if !r.Namespaced {
		return a.objects.Resource(r.GVR())
	}
	return a.objects.Resource(r.GVR()).Namespace(namespace)
}

func (a *Applier) metaResource(r resource, namespace string) metadata.ResourceInterface {
	if !r.Namespaced {
		return a.metadata.Resource(r.GVR())
	}
	return a.metadata.Resource(r.GVR()).Namespace(namespace)
}

// apply is one server-side apply. Force, because Git is right; strict, because a field that the server would drop is a mistake.
func (a *Applier) apply(ctx context.Context, r resource, want *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(want.Object)
	if err != nil {
		return nil, err
	}
	force := true
	opts := metav1.PatchOptions{FieldManager: FieldManager, Force: &force, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	answer, err := a.resource(r, want.GetNamespace()).Patch(ctx, want.GetName(), types.ApplyPatchType, body, opts)
	if err != nil {
		return nil, discreet(r.GroupKind(), err)
	}
	return answer, nil
}

func (a *Applier) get(ctx context.Context, r resource, namespace, name string) (*unstructured.Unstructured, error) {
	return a.resource(r, namespace).Get(ctx, name, metav1.GetOptions{})
}

func (a *Applier) getMeta(ctx context.Context, r resource, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return a.metaResource(r, namespace).Get(ctx, name, metav1.GetOptions{})
}
