package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/bench/flux"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/world"
)

// Namespaces of those who apply the same objects.
const (
	bigSpace     = "bench-mooring"
	kubectlSpace = "bench-kubectl"
	bareSpace    = "bench-bare"
	fluxSpace    = "bench-flux"
)

// patience with anything that is waited for.
const patience = 10 * time.Minute

// row is one line of the table.
type row struct{ id, what, mooring, flux, beside, goal string }

// The lines of the table, by what is measured.
const (
	firstRow     = "first"
	unchangedRow = "unchanged"
	changedRow   = "changed"
	manyRow      = "many"
	editRow      = "edit"
	restRow      = "rest"
	memoryRow    = "memory"
	restartRow   = "restart"
)

// bench is one run.
type bench struct {
	options
	*world.World
	agent   *world.Agent
	repo    *gitserver.Repo
	objects dynamic.Interface
	rows    []row
	// flux is nil where kustomize-controller could not be built, and fluxNote says what there is to say of its column.
	flux     *flux.Binary
	fluxNote string
}

func newBench(ctx context.Context, w *world.World, o options, peer *flux.Binary) (*bench, error) {
	cfg := w.Cluster.Config()
	cfg.QPS = -1
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, World: w, objects: objects, flux: peer}
	if b.repo, err = gitserver.InitRepo(ctx, filepath.Join(w.Git.Root, "mesh.git")); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, ns := range []string{bigSpace, kubectlSpace, bareSpace} {
		maps.Copy(files, folder(ns, ns, "app", o.objects))
		if err := b.namespace(ctx, ns); err != nil {
			return nil, err
		}
	}
	for i := range o.moorings {
		maps.Copy(files, folder(nameOf("team", i), spaceOf(i), nameOf("team", i), perMooring))
	}
	for i := 0; i < o.moorings; i += moorPerSpace {
		if err := b.namespace(ctx, spaceOf(i)); err != nil {
			return nil, err
		}
	}
	if _, err := b.repo.Commit(ctx, gitserver.Change{Files: files}); err != nil {
		return nil, err
	}
	for path, content := range files { // kubectl reads them from a folder
		file := filepath.Join(w.Dir, "mesh", path)
		if strings.HasPrefix(path, "team") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	b.agent, err = w.StartAgent(ctx, world.AgentOptions{})
	return b, err
}

// moorPerSpace is how many Moorings share a namespace.
const moorPerSpace = 10

func spaceOf(mooring int) string { return nameOf("bench-team", mooring/moorPerSpace) }

func (b *bench) namespace(ctx context.Context, name string) error {
	return b.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// mooring makes one. No istiod runs, and there is nobody to ask.
func (b *bench) mooring(ctx context.Context, ns, name string, interval time.Duration) (world.Key, error) {
	m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	m.Spec.Source = v1alpha1.Source{URL: b.Git.RepoURL("mesh.git"), Ref: v1alpha1.Ref{Branch: gitserver.DefaultBranch}}
	m.Spec.Path = name
	m.Spec.Interval.Duration = interval
	m.Spec.Timeout.Duration = patience
	m.Spec.Propagation = v1alpha1.Propagation{Ask: "Never", Pause: metav1.Duration{Duration: time.Millisecond}, Timeout: metav1.Duration{Duration: time.Second}}
	return world.Key{Namespace: ns, Name: name}, b.Client().Create(ctx, m)
}

// inForce waits until a Mooring's newest commit is applied.
func (b *bench) inForce(ctx context.Context, key world.Key, commit string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.Until(ctx, key, "its commit is in force", world.InForce(commit))
	return err
}

// stages gives how long each stage of the passes of some Moorings took in all, in seconds. With no name it is of all.
func (b *bench) stages(ctx context.Context, labels ...string) (map[string]float64, error) {
	m, err := b.agent.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{"passes": m.Get("mooring_passes_total", labels...)}
	for _, stage := range []string{"fetch", "render", "check", "plan", "apply"} {
		all[stage] = m.Get("mooring_stage_duration_seconds_sum", append([]string{fmt.Sprintf("stage=%q", stage)}, labels...)...)
	}
	return all, nil
}

func since(before, now map[string]float64) map[string]float64 {
	diff := map[string]float64{}
	for k, v := range now {
		diff[k] = v - before[k]
	}
	return diff
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// asked are the requests about the objects of the benchmark, about Moorings and about Flux's kinds, without watches.
func (b *bench) asked(ctx context.Context) (kube.Requests, error) {
	all, err := b.Cluster.CountRequests(ctx)
	if err != nil {
		return nil, err
	}
	return all.Only(func(r kube.Request) bool {
		switch r.Resource {
		case "serviceentries", "destinationrules", "moorings", "events", "namespaces", "secrets", "configmaps", "kustomizations", "gitrepositories":
			return r.Verb != "WATCH"
		}
		return false
	}), nil
}

// kubectlApply is what people do without an agent.
func (b *bench) kubectlApply(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := b.Cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(b.Dir, "mesh", kubectlSpace))
	return time.Since(began), err
}

// bareApply sends each object once, 32 at a time, and does nothing else.
func (b *bench) bareApply(ctx context.Context) (time.Duration, error) {
	var all []*unstructured.Unstructured
	for i := range b.options.objects / 2 {
		for text := range strings.SplitSeq(pair(bareSpace, nameOf("app", i), 100), "---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
				return 0, err
			}
			all = append(all, u)
		}
	}
	began := time.Now()
	var g errgroup.Group
	g.SetLimit(32)
	for _, u := range all {
		g.Go(func() error {
			_, err := b.resource(u.GetKind()).Namespace(bareSpace).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "bare", Force: true})
			return err
		})
	}
	err := g.Wait()
	return time.Since(began), err
}

func (b *bench) resource(kind string) dynamic.NamespaceableResourceInterface {
	name := map[string]string{"ServiceEntry": "serviceentries", "DestinationRule": "destinationrules"}[kind]
	return b.objects.Resource(schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: name})
}

func (b *bench) head(ctx context.Context) (string, error) {
	return b.repo.Resolve(ctx, gitserver.DefaultBranch)
}

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s (beside: %s; goal: %s)\n", r.what, r.mooring, r.beside, r.goal)
}
