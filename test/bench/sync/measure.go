package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/results"
	"github.com/mooring-dev/mooring/test/world"
)

var big = world.Key{Namespace: bigSpace, Name: bigSpace}

func labelsOf(key world.Key) []string {
	return []string{fmt.Sprintf("namespace=%q", key.Namespace), fmt.Sprintf("name=%q", key.Name)}
}

// firstApply makes all objects for the first time. The bare loop goes before and after, because the API server is slower the first time it meets a kind.
func (b *bench) firstApply(ctx context.Context) error {
	if _, err := b.bareApply(ctx); err != nil {
		return err
	}
	for _, kind := range []string{"ServiceEntry", "DestinationRule"} {
		if err := b.resource(kind).Namespace(bareSpace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	bare, err := b.bareApply(ctx)
	if err != nil {
		return err
	}
	kubectl, err := b.kubectlApply(ctx)
	if err != nil {
		return err
	}
	commit, err := b.head(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := b.mooring(ctx, bigSpace, bigSpace, time.Hour); err != nil {
		return err
	}
	if err := b.inForce(ctx, big, commit); err != nil {
		return err
	}
	all := time.Since(began)
	took, err := b.stages(ctx, labelsOf(big)...)
	if err != nil {
		return err
	}
	b.add(row{
		firstRow, fmt.Sprintf("first apply of %d objects", b.options.objects),
		fmt.Sprintf("%s (planned in %s); from the Mooring's creation to in force %s, of which fetch %s, render %s, check %s", results.Duration(seconds(took["apply"])),
			results.Duration(seconds(took["plan"])), results.Duration(all), results.Duration(seconds(took["fetch"])), results.Duration(seconds(took["render"])), results.Duration(seconds(took["check"]))), "",
		fmt.Sprintf("bare %s; kubectl %s", results.Duration(bare), results.Duration(kubectl)), "within 1.5 times the bare apply",
	})
	return nil
}

// unchanged looks at all of it again.
func (b *bench) unchanged(ctx context.Context) error {
	const rounds = 10
	if err := b.pass(ctx, big); err != nil { // the watches have begun after the first
		return err
	}
	before, err := b.stages(ctx, labelsOf(big)...)
	if err != nil {
		return err
	}
	asked, err := b.asked(ctx)
	if err != nil {
		return err
	}
	for range rounds {
		if err := b.pass(ctx, big); err != nil {
			return err
		}
	}
	after, err := b.stages(ctx, labelsOf(big)...)
	if err != nil {
		return err
	}
	now, err := b.asked(ctx)
	if err != nil {
		return err
	}
	kubectl, err := b.kubectlApply(ctx)
	if err != nil {
		return err
	}
	took := since(before, after)
	n := took["passes"]
	whole := took["fetch"] + took["render"] + took["check"] + took["plan"] + took["apply"]
	b.add(row{
		unchangedRow, fmt.Sprintf("a pass with nothing changed, %d objects", b.options.objects),
		fmt.Sprintf("%s, of which asking Git %s; requests about objects in %.0f passes: %d", results.Duration(seconds(whole/n)), results.Duration(seconds(took["fetch"]/n)), n, aboutObjects(now.Since(asked)).Total()), "",
		"kubectl " + results.Duration(kubectl), "under 100 ms and at most 10 requests",
	})
	return nil
}

// pass asks for one and waits for it. To ask, and to read what came of it, are requests of the benchmark.
func (b *bench) pass(ctx context.Context, key world.Key) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := b.Sync(ctx, key)
	return err
}

// oneChanged commits a change of one object. The time begins when the agent is told, and what Git takes is taken off.
func (b *bench) oneChanged(ctx context.Context) error {
	const rounds = 5
	var took, kubectl []time.Duration
	for i := range rounds {
		n := 101 + i
		content := b.files(bigSpace, i, n)
		if _, err := b.repo.Commit(ctx, gitserver.Change{Files: content}); err != nil {
			return err
		}
		before, err := b.stages(ctx, labelsOf(big)...)
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := b.Ask(ctx, big); err != nil {
			return err
		}
		if err := b.until(ctx, bigSpace, nameOf("app", i*5), int64(n)); err != nil {
			return err
		}
		written := time.Since(began)
		if err := b.pass(ctx, big); err != nil { // the stages are counted at the end of a pass
			return err
		}
		after, err := b.stages(ctx, labelsOf(big)...)
		if err != nil {
			return err
		}
		took = append(took, written-seconds(since(before, after)["fetch"]))
		for path, text := range b.files(kubectlSpace, i, n) {
			if err := os.WriteFile(b.Dir+"/mesh/"+path, []byte(text), 0o600); err != nil {
				return err
			}
		}
		d, err := b.kubectlApply(ctx)
		if err != nil {
			return err
		}
		kubectl = append(kubectl, d)
	}
	b.add(row{
		changedRow, fmt.Sprintf("one object changed in a commit to %d", b.options.objects),
		fmt.Sprintf("%s, median of %d", results.Duration(percentile(took, 50)), rounds), "", "kubectl " + results.Duration(percentile(kubectl, 50)), "under 500 ms from the fetched commit to the written object",
	})
	return nil
}

// files are those of a folder in which the first object of a part has another value.
func (b *bench) files(ns string, part, value int) map[string]string {
	var content []string
	for j := part * 5; j < part*5+5; j++ {
		n := 100
		if j == part*5 {
			n = value
		}
		content = append(content, pair(ns, nameOf("app", j), n))
	}
	return map[string]string{fmt.Sprintf("%s/part-%03d.yaml", ns, part): strings.Join(content, "---\n")}
}

func connections(u *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "trafficPolicy", "connectionPool", "tcp", "maxConnections")
	return n
}

// untilPatience is longer than the interval at which Flux is told to look, and its jitter.
const untilPatience = 3 * time.Minute

// until watches a DestinationRule until it allows so many connections.
func (b *bench) until(ctx context.Context, ns, name string, want int64) error {
	ctx, cancel := context.WithTimeout(ctx, untilPatience)
	defer cancel()
	seconds := int64(untilPatience.Seconds())
	rules := b.resource("DestinationRule").Namespace(ns)
	w, err := rules.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && connections(u) == want {
			return nil
		}
	}
	return fmt.Errorf("DestinationRule %s/%s does not allow %d connections after %s", ns, name, want, untilPatience)
}

// manyInterval is Mooring's default.
const manyInterval = 5 * time.Minute

// many adds the many Moorings.
func (b *bench) many(ctx context.Context) error {
	commit, err := b.head(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var keys []world.Key
	for i := range b.moorings {
		key, err := b.mooring(ctx, spaceOf(i), nameOf("team", i), manyInterval)
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		if err := b.inForce(ctx, key, commit); err != nil {
			return err
		}
	}
	b.add(row{id: manyRow, what: fmt.Sprintf("%d Moorings of %d objects made at once, until all are in force", b.moorings, perMooring), mooring: results.Duration(time.Since(began))})
	return nil
}

// edited changes objects by hand, one after the other, and waits until each is as Git wants it.
func (b *bench) edited(ctx context.Context) error {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a choice of objects
	var took []time.Duration
	for range b.edits {
		mooring, n := r.IntN(b.moorings), r.IntN(perMooring/2)
		ns, name := spaceOf(mooring), nameOf(nameOf("team", mooring), n)
		if err := b.edit(ctx, ns, name); err != nil {
			return err
		}
		began := time.Now()
		if err := b.until(ctx, ns, name, 100); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	b.add(row{
		id: editRow, what: fmt.Sprintf("somebody edits one of %d objects: corrected after", b.moorings*perMooring+b.options.objects),
		mooring: percentiles(took), goal: "p50 under 200 ms, p99 under 1 s",
	})
	return nil
}

// edit does what somebody does with kubectl edit: the value is wrong afterwards.
func (b *bench) edit(ctx context.Context, ns, name string) error {
	wrong := []byte(`{"spec":{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":7}}}}}`)
	_, err := b.resource("DestinationRule").Namespace(ns).Patch(ctx, name, types.MergePatchType, wrong, metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return err
}

func percentiles(edits []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s, of %d edits", results.Duration(percentile(edits, 50)), results.Duration(percentile(edits, 99)), len(edits))
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return -1
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)*p/100, len(all)-1)]
}

// atRest leaves the agent alone.
func (b *bench) atRest(ctx context.Context) error {
	said, memory, err := b.leaveAlone(ctx, b.rest, b.agent.PID(), func() (float64, error) {
		all, err := b.stages(ctx)
		return all["passes"], err
	})
	if err != nil {
		return err
	}
	objects := b.moorings*perMooring + b.options.objects
	b.add(row{id: restRow, what: fmt.Sprintf("%d objects at rest for %s", objects, b.rest), mooring: said, goal: "no write, no GET or LIST after start, under 0.5 % of a core"})
	b.add(row{id: memoryRow, what: fmt.Sprintf("resident memory with %d objects", objects), mooring: memory, goal: "under 250 MB"})
	return nil
}

// restarted starts another agent, which remembers nothing.
func (b *bench) restarted(ctx context.Context) error {
	if err := b.agent.Stop(); err != nil {
		return err
	}
	asked, err := b.asked(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if b.agent, err = b.StartAgent(ctx, world.AgentOptions{}); err != nil {
		return err
	}
	err = poll.Until(ctx, "every Mooring had a pass", func() error {
		m, err := b.agent.Metrics(ctx)
		if err != nil {
			return err
		}
		if done := m.Get("mooring_ready"); int(done) < b.moorings+1 {
			return fmt.Errorf("%v of %d", done, b.moorings+1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	now, err := b.glance(ctx, b.agent.PID())
	if err != nil {
		return err
	}
	b.add(row{id: restartRow, what: "a restart: until every object is verified", mooring: now.restarted(asked, took)})
	return nil
}
