package traffic_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/proof"
	"github.com/mooring-dev/mooring/test/proof/random"
	"github.com/mooring-dev/mooring/test/proof/traffic"
)

func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }

// shortSeed is that of the short form, where none is given.
const shortSeed = "2026"

// TestTraffic is the proof: with Mooring nothing that the package comment names is ever so, but for what goes as a whole; with kubectl apply it is.
func TestTraffic(t *testing.T) {
	commits, byHand, env := 500, 500, []string(nil)
	if !proof.Full() {
		// istiod's own debounce of 100 ms is half of the time of the short form, and kubectl takes seconds for a commit.
		commits, byHand, env = 12, 5, []string{"PILOT_DEBOUNCE_AFTER=20ms"}
		if os.Getenv("MOORING_PROOF_SEED") == "" {
			t.Setenv("MOORING_PROOF_SEED", shortSeed)
		}
	}
	seed := proof.Seed(t)
	cluster := kube.Start(t)
	var all []tally
	t.Run("mooring", func(t *testing.T) {
		all = append(all, stream(t, cluster, newMooring(t, cluster), "mooring", seed, commits, env))
	})
	t.Run("kubectl", func(t *testing.T) {
		sum := stream(t, cluster, newKubectl(t, cluster), "kubectl", seed, byHand, env)
		if sum.faults[traffic.Dangling] == 0 && (proof.Full() || os.Getenv("MOORING_PROOF_SEED") == shortSeed) {
			t.Error("kubectl apply left no route to nothing: either it has learned an order, or this proof sees nothing")
		}
		all = append(all, sum)
	})
	for _, sum := range all {
		t.Log(sum)
	}
	if proof.Full() && !t.Failed() {
		record(t, seed, all)
	}
}

// applied is a way to bring a mesh to the cluster.
type applied interface {
	// observe is told of the istiod, before the first apply after which proxies look.
	observe(t *testing.T, pilot *istiod.Istiod)
	// apply returns when what Git has is in the cluster. What it says is for a failure.
	apply(t *testing.T, mesh *random.Mesh) (said string)
	// strict says whether a fault fails the test.
	strict() bool
}

// tally counts faults over all commits.
type tally struct {
	way           string
	commits       int
	responses     int
	faults        map[traffic.Kind]int
	hit           map[traffic.Kind]int // commits with such a fault
	lasted        map[traffic.Kind]time.Duration
	took, slowest time.Duration
}

func (s tally) String() string {
	out := fmt.Sprintf("%s: %d commits, %d responses, %s for a commit, %s at most:", s.way, s.commits, s.responses,
		(s.took / time.Duration(max(1, s.commits))).Round(10*time.Millisecond), s.slowest.Round(10*time.Millisecond))
	for _, k := range traffic.Kinds() {
		out += fmt.Sprintf(" %s %d (in %d commits, %s)", k, s.faults[k], s.hit[k], s.lasted[k].Round(time.Millisecond))
	}
	return out
}

// stream applies a mesh and its commits in one way, and looks at what the proxies are told.
func stream(t *testing.T, cluster *kube.Cluster, way applied, name string, seed uint64, commits int, env []string) tally {
	t.Helper()
	sum := tally{way: name, faults: map[traffic.Kind]int{}, hit: map[traffic.Kind]int{}, lasted: map[traffic.Kind]time.Duration{}}
	mesh := random.New(seed, random.Options{Prefix: name, Labels: map[string]string{"proof": name}})
	way.apply(t, mesh)
	pilot := istiod.Start(t, cluster, istiod.Options{Name: "istiod-" + name, Env: env, Args: []string{"--meshConfig", meshConfig(t, name)}})
	way.observe(t, pilot)
	var watches []*traffic.Watch
	for _, p := range []istiod.Proxy{{Namespace: name + "-1"}, {Gateway: true}} {
		w := traffic.NewWatch(p)
		istiod.Connect(t, pilot, p, istiod.Behaviour{Seen: w.Seen})
		watches = append(watches, w)
	}
	settle(t, cluster, pilot, watches, mesh)
	for n := range commits {
		before := mesh.Files()
		change := mesh.Change()
		after := rulesOf(mesh)
		stays := func(rule string) bool { return after[rule] }
		for _, w := range watches {
			w.Begin()
		}
		began := time.Now()
		said := way.apply(t, mesh)
		took := time.Since(began)
		settle(t, cluster, pilot, watches, mesh)
		sum.commits, sum.took, sum.slowest = sum.commits+1, sum.took+took, max(sum.slowest, took)
		var seen []traffic.Commit
		for _, w := range watches {
			seen = append(seen, w.End(stays))
		}
		if bad := sum.count(seen, way.strict()); bad {
			fail(t, seed, n, change, said, before, mesh.Files(), seen)
		}
	}
	return sum
}

// rulesOf are the VirtualServices of a mesh, as namespace/name.
func rulesOf(mesh *random.Mesh) map[string]bool {
	out := map[string]bool{}
	for _, o := range mesh.Objects() {
		if o.GetKind() == "VirtualService" {
			out[o.GetNamespace()+"/"+o.GetName()] = true
		}
	}
	return out
}

// meshConfig makes an istiod look at the namespaces of one way alone.
func meshConfig(t *testing.T, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	text := fmt.Sprintf("discoverySelectors: [{matchLabels: {proof: %s}}]\n", name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// count adds what proxies saw of a commit, and says whether the proof has failed.
func (s *tally) count(seen []traffic.Commit, strict bool) (bad bool) {
	hit := map[traffic.Kind]bool{}
	for _, c := range seen {
		s.responses += len(c.Responses)
		for _, f := range c.Faults {
			s.faults[f.Kind]++
			s.lasted[f.Kind] += f.For
			hit[f.Kind] = true
			bad = bad || f.Lasting || strict && f.Kind != traffic.Retired && f.Kind != traffic.Hidden
		}
	}
	for k := range hit {
		s.hit[k]++
	}
	return bad
}

// fail says all that is needed to look at a fault: the seed, the commit, what was there and shall be, what was done and what the proxies were told.
func fail(t *testing.T, seed uint64, n int, change, said string, before, after map[string]*file, seen []traffic.Commit) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, commit %d: %s\n%s\n", seed, n+1, change, said)
	for _, c := range seen {
		for _, f := range c.Faults {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	t.Error(b.String())
	for _, c := range seen {
		fmt.Fprintf(&b, "\n%s was told:\n", c.Proxy)
		for _, r := range c.Responses {
			fmt.Fprintf(&b, "    %s\n", r)
		}
	}
	for _, name := range slices.Sorted(keys(before, after)) {
		if string(data(before[name])) != string(data(after[name])) {
			fmt.Fprintf(&b, "\n===== %s before\n%s\n===== %s after\n%s", name, data(before[name]), name, data(after[name]))
		}
	}
	dir := os.Getenv("MOORING_PROOF_FAULTS")
	if dir == "" {
		dir = t.TempDir()
	}
	name := filepath.Join(dir, fmt.Sprintf("traffic-%d-%d.txt", seed, n+1))
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Error(err)
	}
}

// record writes the figures of the whole proof.
func record(t *testing.T, seed uint64, all []tally) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Seed %d. A sidecar and a gateway before a real istiod, looked at after every single response; see test/proof/traffic for what is counted. ", seed)
	b.WriteString("Figures are faults, in how many commits, and for how long together.\n\n| | commits | responses |")
	for _, k := range traffic.Kinds() {
		fmt.Fprintf(&b, " %s |", k)
	}
	b.WriteString(" a commit takes | the slowest |\n|---|---:|---:|" + strings.Repeat("---:|", len(traffic.Kinds())+2) + "\n")
	for _, s := range all {
		fmt.Fprintf(&b, "| %s | %d | %d |", s.way, s.commits, s.responses)
		for _, k := range traffic.Kinds() {
			fmt.Fprintf(&b, " %d in %d, %s |", s.faults[k], s.hit[k], s.lasted[k].Round(time.Millisecond))
		}
		fmt.Fprintf(&b, " %s | %s |\n", (s.took / time.Duration(max(1, s.commits))).Round(10*time.Millisecond), s.slowest.Round(10*time.Millisecond))
	}
	proof.Record(t, "traffic", b.String())
}
