package proxy

import (
	"context"
	"fmt"
	"sync"
	"time"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/core"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/config/mesh/meshwatcher"
	"istio.io/istio/pkg/kube/krt"
	"istio.io/istio/pkg/log"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render/check/world"
)

// Options say what is known beside the objects.
type Options struct {
	// Before is the mesh as it lives, nil without a cluster. An object that lives already is as old as it is there; what is new is the youngest.
	Before *world.World
	// MeshConfig of the installation; Istio's defaults when nil.
	MeshConfig *meshconfig.MeshConfig
}

// Mesh is a world as istiod sees it. It wants a Close, and is not safe for concurrent use.
type Mesh struct {
	world     *world.World
	env       *model.Environment
	push      *model.PushContext
	generator *core.ConfigGeneratorImpl
	registry  *registry
	markers   *markers

	proxies []Proxy
	asked   map[string]*Config

	stop    chan struct{}
	close   sync.Once
	running sync.WaitGroup
}

// New reads a world. The error is the context's when that ended first.
func New(ctx context.Context, w *world.World, o Options) (*Mesh, error) {
	quiet()
	m := &Mesh{
		world: w, markers: &markers{sources: map[string]Source{}}, asked: map[string]*Config{}, stop: make(chan struct{}),
	}
	if err := m.start(ctx, o); err != nil {
		m.Close()
		return nil, fmt.Errorf("read the mesh: %w", err)
	}
	m.proxies = Proxies(w)
	return m, nil
}

func (m *Mesh) start(ctx context.Context, o Options) error {
	age := ages(o.Before)
	configuration := o.MeshConfig
	if configuration == nil {
		configuration = mesh.DefaultMeshConfig()
	}
	watcher := meshwatcher.ConfigAdapter(krt.NewStatic(
		&meshwatcher.MeshConfigResource{MeshConfig: configuration}, true, krt.WithStop(m.stop), krt.WithName("MeshConfig"),
	))
	objects := newStore(m.world, m.markers, age, m.stop)
	m.registry = newRegistry(m.world, age)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}

	m.env = model.NewEnvironment()
	m.env.Watcher = watcher
	m.env.NetworksWatcher = meshwatcher.NewFixedNetworksWatcher(nil)
	m.env.NetworkManager = &model.NetworkManager{} // knows no other network, and so asks no name server
	m.env.ServiceDiscovery = m.registry
	m.env.ConfigStore = objects
	m.env.VirtualServiceController = model.NewVirtualServiceController(objects, model.VSControllerOptions{}, watcher)
	m.running.Go(func() { m.env.VirtualServiceController.Run(m.stop) })
	m.env.Init()
	shard := model.ShardKey{Cluster: constants.DefaultClusterName, Provider: "External"}
	for s, list := range m.registry.endpoints {
		m.env.EndpointIndex.UpdateServiceEndpoints(shard, string(s.Hostname), s.Attributes.Namespace, list, false)
	}
	if err := m.synced(ctx); err != nil {
		return err
	}
	m.push = m.env.PushContext()
	m.push.InitContext(m.env, nil, nil)
	m.generator = core.NewConfigGenerator(&model.DisabledCache{})
	return ctx.Err()
}

// synced waits until the library has merged roots and delegates.
func (m *Mesh) synced(ctx context.Context) error {
	for !m.env.VirtualServiceController.HasSynced() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// Close ends what the library started.
func (m *Mesh) Close() {
	m.close.Do(func() { close(m.stop) })
	m.running.Wait()
}

// ages tells how old an object is: what is older wins where two say different things. What the commit creates is younger than all that lives.
func ages(before *world.World) func(*world.Object) metav1.Time {
	youngest := metav1.NewTime(time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC))
	return func(o *world.Object) metav1.Time {
		at := o.Unstructured().GetCreationTimestamp()
		if before != nil && at.IsZero() {
			if lives := before.Find(o.ID); lives != nil {
				at = lives.Unstructured().GetCreationTimestamp()
			}
		}
		if at.IsZero() {
			return youngest
		}
		return at
	}
}

// quiet keeps the library's log out of the caller's output: it speaks of every push. Setting a level is atomic.
func quiet() {
	for _, scope := range log.Scopes() {
		if scope.GetOutputLevel() != log.NoneLevel {
			scope.SetOutputLevel(log.NoneLevel)
		}
	}
}

// request is a push of everything.
func (m *Mesh) request() *model.PushRequest {
	return &model.PushRequest{Push: m.push, Forced: true}
}
