package sync

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/alarm"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Options of a Syncer.
type Options struct {
	// StoreDir is where fetched commits are kept. It can be lost at any time: what is missing is fetched again.
	StoreDir string
	// FetchTimeout bounds every conversation with a Git server; 0 means a minute.
	FetchTimeout time.Duration
	// Git is how large repositories and their files may be; fields that are zero take their value from repos.DefaultLimits.
	Git repos.Limits
	// Version of Mooring, for the ApplySet's tooling annotation.
	Version string
	// Istiod says how istiod is reached by the Moorings whose spec.propagation.ask is Service.
	Istiod istiod.Options
}

// AgentOptions of an agent.
type AgentOptions struct {
	Options
	// MetricsAddr, ProbeAddr and PprofAddr are host:port; "0" switches one off.
	MetricsAddr, ProbeAddr, PprofAddr string
	// LeaderElect lets several agents run, of which one works.
	LeaderElect bool
	// LeaderNamespace holds the lease; empty means the agent's own namespace.
	LeaderNamespace string
	// AlarmsAcross are the namespaces whose Alarms may look at Moorings of other namespaces, "*" for all; empty means the
	// agent's own namespace.
	AlarmsAcross []string
	// Shard is the part of the Moorings and Alarms that this agent works for: those with the label v1alpha1.ShardLabel of this value; empty means those that
	// do not have the label. Each shard elects a leader of its own.
	Shard string
	// Concurrent is how many Moorings are worked for at a time; 0 means eight for each core, and sixteen at least. A pass that waits, for a Git server or at a gate, costs next to nothing
	// and must not hold others up: it is not counted, and there may be patient times as many of them.
	Concurrent int
}

// patient is how many passes may wait for each one that works.
const patient = 16

// Scheme knows the types that Mooring reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s) // fails for conflicting types only, which two fixed lists do not have
	_ = v1alpha1.AddToScheme(s)
	return s
}

// New makes a Syncer for previews: it reads with cfg's rights and writes nothing to the cluster.
func New(cfg *rest.Config, opts Options) (*Syncer, error) {
	c, err := client.New(cfg, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	s, _, err := newSyncer(cfg, c, nil, opts, apply.Options{})
	return s, err
}

func newSyncer(cfg *rest.Config, reader client.Reader, writer client.Client, opts Options, applying apply.Options) (*Syncer, *apply.Applier, error) {
	store, err := repos.Open(opts.StoreDir, repos.Options{Timeout: opts.FetchTimeout, Limits: opts.Git})
	if err != nil {
		return nil, nil, err
	}
	applier, err := apply.New(cfg, applying)
	if err != nil {
		return nil, nil, err
	}
	proxies, err := istiod.New(cfg, opts.Istiod)
	if err != nil {
		return nil, nil, err
	}
	renderer := NewRenderer()
	return &Syncer{
		source:   store,
		renderer: renderer,
		cache:    renderer.Cache,
		checker:  check.New(),
		surveyor: applier,
		applier:  applier,
		reader:   reader,
		moorings: reader,
		proxies:  proxies,
		pusher:   store,
		proposer: toForge,
		parent:   parent{client: writer, tool: "mooring/" + opts.Version},
	}, applier, nil
}

// RunAgent keeps all Moorings of the cluster until ctx ends.
func RunAgent(ctx context.Context, cfg *rest.Config, log logr.Logger, opts AgentOptions) error {
	ctrl.SetLogger(log)
	part, lease, err := shard(opts.Shard)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                 Scheme(),
		Logger:                 log,
		Metrics:                metricsserver.Options{BindAddress: opts.MetricsAddr},
		HealthProbeBindAddress: opts.ProbeAddr,
		PprofBindAddress:       opts.PprofAddr,
		LeaderElection:         opts.LeaderElect,
		Cache: cache.Options{
			ByObject:         map[client.Object]cache.ByObject{&v1alpha1.Mooring{}: {Label: part}, &v1alpha1.Alarm{}: {Label: part}},
			DefaultTransform: slim,
		},
		LeaderElectionID:              lease,
		LeaderElectionNamespace:       opts.LeaderNamespace,
		LeaderElectionReleaseOnCancel: true, // nothing runs after Start returned, so the next agent need not wait for the lease to run out
	})
	if err != nil {
		return fmt.Errorf("make manager: %w", err)
	}
	wakes := &waker{log: log}
	syncer, applier, err := newSyncer(cfg, mgr.GetAPIReader(), mgr.GetClient(), opts.Options, apply.Options{Wake: wakes.wake, WatchBroken: wakes.broken})
	if err != nil {
		return err
	}
	wakes.units = &syncer.units
	if err := mgr.Add(manager.RunnableFunc(applier.Watch)); err != nil {
		return fmt.Errorf("add the watches: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc((&memoryKeeper{rest: func(idle bool) int64 {
		if !idle {
			applier.Rest()
		}
		return syncer.rest(idle)
	}}).run)); err != nil {
		return fmt.Errorf("add what gives memory back: %w", err)
	}
	syncer.owners = mgr.GetAPIReader() // the cache knows one shard only
	instance, err := os.Hostname()     // in a cluster, the name of the pod
	if err != nil {
		return fmt.Errorf("find a name for this agent: %w", err)
	}
	syncer.slots = make(slots, concurrent(opts))
	alarms := alarm.New(alarm.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Metrics: alarm.NewMetrics(metrics.Registry), Log: log.WithName("alarm"),
		Across: alarmsAcross(opts),
	})
	if err := alarms.AddTo(mgr); err != nil {
		return err
	}
	r := &Reconciler{
		client:  mgr.GetClient(),
		syncer:  syncer,
		remover: applier,
		waker:   wakes,
		reporter: &report.Reporter{
			Client: mgr.GetClient(), Metrics: report.NewMetrics(metrics.Registry), Instance: instance, Notifier: alarms,
		},
	}
	err = builder.ControllerManagedBy(mgr).
		For(&v1alpha1.Mooring{}, builder.WithPredicates(asking())).
		Watches(&v1alpha1.Mooring{}, syncer.waits.ending(), builder.WithPredicates(asking())).
		WatchesRawSource(wakes.source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: patient * concurrent(opts)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// shard gives the selector of an agent's part of the Moorings, and the name of the lease that its agents share.
func shard(name string) (labels.Selector, string, error) {
	op, values, lease := selection.DoesNotExist, []string(nil), "agent.mooring.dev"
	if name != "" {
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 { // it is part of a lease's name, and a label's value
			return nil, "", fmt.Errorf("%q is no name of a shard: %s", name, strings.Join(faults, "; "))
		}
		op, values, lease = selection.Equals, []string{name}, "agent-"+name+".mooring.dev"
	}
	part, err := labels.NewRequirement(v1alpha1.ShardLabel, op, values)
	if err != nil {
		return nil, "", fmt.Errorf("select shard %q: %w", name, err)
	}
	return labels.NewSelector().Add(*part), lease, nil
}

// ownNamespace is where a Pod finds the name of the namespace that it runs in.
const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// alarmsAcross are the namespaces whose Alarms may look beyond them: none, for an agent outside of a cluster that is not told.
func alarmsAcross(opts AgentOptions) []string {
	if len(opts.AlarmsAcross) > 0 {
		return opts.AlarmsAcross
	}
	if name, err := os.ReadFile(ownNamespace); err == nil {
		return []string{strings.TrimSpace(string(name))}
	}
	return nil
}

func concurrent(opts AgentOptions) int {
	if opts.Concurrent > 0 {
		return opts.Concurrent
	}
	return max(16, 8*goruntime.GOMAXPROCS(0))
}
