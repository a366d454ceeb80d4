package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/test/gitserver"
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
		fmt.Sprintf("first apply of %d objects", b.options.objects),
		fmt.Sprintf("%s (planned in %s); from the Mooring's creation to in force %s, of which fetch %s, render %s, check %s", results.Duration(seconds(took["apply"])),
			results.Duration(seconds(took["plan"])), results.Duration(all), results.Duration(seconds(took["fetch"])), results.Duration(seconds(took["render"])), results.Duration(seconds(took["check"]))),
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
	of := now.Since(asked)
	objects := 0
	for r, n := range of {
		if r.Resource == "serviceentries" || r.Resource == "destinationrules" {
			objects += n
		}
	}
	b.add(row{
		fmt.Sprintf("a pass with nothing changed, %d objects", b.options.objects),
		fmt.Sprintf("%s, of which asking Git %s; requests about objects in %.0f passes: %d", results.Duration(seconds(whole/n)), results.Duration(seconds(took["fetch"]/n)), n, objects),
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
		err = b.until(ctx, bigSpace, nameOf("app", i*5), func(u *unstructured.Unstructured) bool { return connections(u) == int64(n) })
		if err != nil {
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
		fmt.Sprintf("one object changed in a commit to %d", b.options.objects),
		fmt.Sprintf("%s, median of %d", results.Duration(percentile(took, 50)), rounds), "kubectl " + results.Duration(percentile(kubectl, 50)), "under 500 ms from the fetched commit to the written object",
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

// until watches a DestinationRule until it is right.
func (b *bench) until(ctx context.Context, ns, name string, right func(*unstructured.Unstructured) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	seconds := int64(60)
	rules := b.resource("DestinationRule").Namespace(ns)
	w, err := rules.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); ok && right(u) {
			return nil
		}
	}
	return fmt.Errorf("DestinationRule %s/%s has not become right within a minute", ns, name)
}

// many adds the many Moorings.
func (b *bench) many(ctx context.Context) error {
	commit, err := b.head(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var keys []world.Key
	for i := range b.moorings {
		key, err := b.mooring(ctx, spaceOf(i), nameOf("team", i), 5*time.Minute)
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
	b.add(row{fmt.Sprintf("%d Moorings of %d objects made at once, until all are in force", b.moorings, perMooring), results.Duration(time.Since(began)), "", ""})
	return nil
}

// edited changes objects by hand, one after the other, and waits until each is as Git wants it.
func (b *bench) edited(ctx context.Context) error {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a choice of objects
	var took []time.Duration
	for range b.edits {
		mooring, n := r.IntN(b.moorings), r.IntN(perMooring/2)
		ns, name := spaceOf(mooring), nameOf(nameOf("team", mooring), n)
		rules := b.resource("DestinationRule").Namespace(ns)
		_, err := rules.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"trafficPolicy":{"connectionPool":{"tcp":{"maxConnections":7}}}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
		if err != nil {
			return err
		}
		began := time.Now()
		if err := b.until(ctx, ns, name, func(u *unstructured.Unstructured) bool { return connections(u) == 100 }); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	b.add(row{
		fmt.Sprintf("somebody edits one of %d objects: corrected after", b.moorings*perMooring+b.options.objects),
		fmt.Sprintf("p50 %s, p99 %s, of %d edits", results.Duration(percentile(took, 50)), results.Duration(percentile(took, 99)), len(took)), "", "p50 under 200 ms, p99 under 1 s",
	})
	return nil
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
	if err := pause(ctx, 5*time.Second); err != nil { // what the edits have set off is over
		return err
	}
	asked, err := b.asked(ctx)
	if err != nil {
		return err
	}
	stages, err := b.stages(ctx)
	if err != nil {
		return err
	}
	cpu, err := b.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, b.rest); err != nil {
		return err
	}
	used, err := b.cpu()
	if err != nil {
		return err
	}
	now, err := b.asked(ctx)
	if err != nil {
		return err
	}
	later, err := b.stages(ctx)
	if err != nil {
		return err
	}
	memory, err := b.status("VmRSS")
	if err != nil {
		return err
	}
	peak, err := b.status("VmHWM")
	if err != nil {
		return err
	}
	requests := now.Since(asked)
	said := fmt.Sprint(requests.Total())
	if requests.Total() > 0 {
		said += " (" + strings.ReplaceAll(strings.TrimSpace(requests.String()), "\n", "; ") + ")"
	}
	objects := b.moorings*perMooring + b.options.objects
	b.add(row{
		fmt.Sprintf("%d objects at rest for %s", objects, b.rest),
		fmt.Sprintf("%s requests that are no watches in %.0f passes, %.2f %% of a core", said, since(stages, later)["passes"], 100*(used-cpu).Seconds()/b.rest.Seconds()),
		"", "no write, no GET or LIST after start, under 0.5 % of a core",
	})
	b.add(row{fmt.Sprintf("resident memory with %d objects", objects), fmt.Sprintf("%s, at most %s before", memory, peak), "", "under 250 MB"})
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
	err = world.Poll(ctx, "every Mooring had a pass", func() error {
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
	now, err := b.asked(ctx)
	if err != nil {
		return err
	}
	peak, err := b.status("VmHWM")
	if err != nil {
		return err
	}
	requests := now.Since(asked)
	writes := 0
	for r, n := range requests {
		if r.Verb == "APPLY" || r.Verb == "PATCH" {
			writes += n
		}
	}
	b.add(row{
		"a restart: until every object is verified", fmt.Sprintf("%s, %d requests (%d of them applies, which are tried only: nothing is written), %s of memory at most", results.Duration(took), requests.Total(), writes, peak), "", "",
	})
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// cpu is how long the agent has used a core so far. Linux counts it in hundredths of a second.
func (b *bench) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.agent.PID()))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is not what it was: %s", b.agent.PID(), text)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// status gives a line of /proc/PID/status in megabytes.
func (b *bench) status(name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.agent.PID()))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if before, after, ok := strings.Cut(line, ":"); ok && before == name {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(after), " kB"))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%d MB", kilobytes/1000), nil
		}
	}
	return "", fmt.Errorf("/proc/%d/status has no %s", b.agent.PID(), name)
}
