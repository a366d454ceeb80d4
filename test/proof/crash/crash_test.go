// Package crash_test is the crash proof: a commit is being applied by a real agent, which reads from a real Git server and writes to a real API
// server; it is killed with SIGKILL, at a request or between two or by the clock; the next commit comes, and the agent is started anew.
// Then nothing may be there that nobody keeps, nothing may have gone that was wanted, and what lives must be what a clean apply of
// the last commit makes in another namespace, owners of fields included.
//
// A run is one commit that is in force (sometimes none), the commit that is interrupted, and the last one: a change, the same again, or the first
// one back. All are drawn at random out of Istio's kinds with subsets that move, CRDs with custom resources, namespaces, RBAC, a webhook, and
// objects that have to be replaced. See commit_test.go.
package crash_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-dev/mooring/test/proof"
	"github.com/mooring-dev/mooring/test/proof/witness"
	"github.com/mooring-dev/mooring/test/world"
)

const (
	// patience is how long a run waits for what should be there within a second or two.
	patience = 2 * time.Minute
	// runs of the whole proof, and how long the short form begins new ones.
	runs  = 200
	short = 18 * time.Second
)

// shared hands the world from TestMain to the tests, for which the testing package has no other way.
var shared struct{ *world.World }

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard()) // a watch whose definition goes complains
	ctrl.SetLogger(logr.Discard()) // the client of the API server would complain that there is none
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := inWorld(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func inWorld(ctx context.Context, m *testing.M) (code int, err error) {
	binaries, err := world.Build(ctx, os.Stderr)
	if err != nil {
		return 1, err
	}
	if shared.World, err = world.Start(ctx, binaries); err != nil {
		return 1, err
	}
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code = <-ended:
	case <-ctx.Done(): // interrupted: what runs is closed all the same
		code, err = 1, errors.New("interrupted")
	}
	return code, errors.Join(err, shared.Close())
}

// stage is what the runs of one test share: the agent, who kills it, and who sees all.
type stage struct {
	*world.World
	killer  *killer
	agent   *world.Agent
	witness *witness.Witness
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{World: shared.World, killer: guard(t, shared.World)}
	s.restart(t)
	var err error
	if s.witness, err = witness.Watch(t.Context(), s.Cluster.Config(), kinds()...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) restart(t *testing.T) {
	t.Helper()
	var err error
	if s.agent, err = s.StartAgent(within(t, patience), world.AgentOptions{Kubeconfig: s.killer.kubeconfig}); err != nil {
		t.Fatal(err)
	}
}

// within is a context for one wait.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("not within %s", d))
	t.Cleanup(cancel)
	return ctx
}

func TestCrashProof(t *testing.T) {
	seed := proof.Seed(t)
	s := newStage(t)
	begun := time.Now()
	figures := map[string]int{}
	done := 0
	faulty := 0
	for ; done < runs && faulty < 3; done++ {
		if !proof.Full() && time.Since(begun) > short {
			break
		}
		seed := seed + uint64(done)
		well := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newRun(t, s, rand.New(rand.NewPCG(seed, 0)))
			r.play()
			for _, fault := range r.judge() {
				t.Error(fault)
			}
			r.end()
			for _, at := range r.kills {
				figures[at]++
			}
		})
		if !well {
			faulty++
		}
	}
	text := fmt.Sprintf("%d runs in %s, %d of them with faults. The agent was killed:\n\n%s",
		done, time.Since(begun).Round(time.Second), faulty, table(figures))
	t.Log(text)
	if proof.Full() {
		proof.Record(t, "crashes", text)
	}
}

// table writes how often the agent was killed where.
func table(figures map[string]int) string {
	var b strings.Builder
	b.WriteString("| at what | times |\n|---|---:|\n")
	for _, at := range slices.Sorted(maps.Keys(figures)) {
		fmt.Fprintf(&b, "| %s | %d |\n", at, figures[at])
	}
	return b.String()
}
