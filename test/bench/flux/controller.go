package flux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/world"
)

// Namespace of the controller, its source and its Kustomizations.
const Namespace = "flux-system"

// Settings are the flags that differ from the defaults, for those who read the figures.
const Settings = "--concurrent=10 --requeue-dependency=5s"

// Install makes the namespace and the kinds that the controller knows.
func (b Binary) Install(ctx context.Context, w *world.World) error {
	if err := kube.InstallCRDFiles(ctx, w.Cluster.Config(), b.crds...); err != nil {
		return fmt.Errorf("install Flux's CRDs: %w", err)
	}
	return w.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
}

// Controller is a running kustomize-controller. It answers for its health and metrics as an agent of Mooring does.
type Controller struct {
	*world.Agent
	temp string
}

// Start starts a controller and answers when it says that it is ready.
func (b Binary) Start(ctx context.Context, w *world.World) (*Controller, error) {
	memory := "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		memory = w.Dir
	}
	temp, err := world.Scratch(memory, "mooring-flux")
	if err != nil {
		return nil, fmt.Errorf("start kustomize-controller: %w", err)
	}
	agent, err := b.start(ctx, w, temp)
	if err != nil {
		_ = os.RemoveAll(temp)
		return nil, err
	}
	return &Controller{Agent: agent, temp: temp}, nil
}

func (b Binary) start(ctx context.Context, w *world.World, temp string) (*world.Agent, error) {
	ports, err := world.FreePorts(2)
	if err != nil {
		return nil, err
	}
	args := append(strings.Fields(Settings), "--metrics-addr="+ports[0], "--health-addr="+ports[1], "--watch-all-namespaces=true")
	cmd := exec.Command(b.Path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Cluster.Kubeconfig(), "RUNTIME_NAMESPACE="+Namespace, "TMPDIR="+temp)
	p, err := child.Start("kustomize-controller", filepath.Join(w.Dir, "kustomize-controller.log"), cmd)
	if err != nil {
		return nil, err
	}
	a := &world.Agent{Process: p, MetricsURL: "http://" + ports[0] + "/metrics", ProbeURL: "http://" + ports[1]}
	err = poll.Until(ctx, "kustomize-controller is ready", func() error {
		if ended := p.Ended(); ended != nil {
			return poll.Final(ended)
		}
		return a.Probe(ctx, "readyz")
	})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.LogTail(20))
	}
	return a, nil
}

// Stop ends the controller, at once: nothing that is measured comes after it.
func (c *Controller) Stop() error {
	c.Kill()
	return os.RemoveAll(c.temp)
}

// Seen is how many Kustomizations have had a pass since the start.
func (c *Controller) Seen(ctx context.Context) (int, error) {
	m, err := c.Metrics(ctx)
	return len(m.Series(passesMetric+"_count", ofKustomizations)), err
}

// passesMetric is a histogram of reconciliations by kind, namespace and name.
const passesMetric = "gotk_reconcile_duration_seconds"

const ofKustomizations = `kind="Kustomization"`

// Passes are how many reconciliations are over, and how long they took together, in seconds.
func (c *Controller) Passes(ctx context.Context, labels ...string) (passes, took float64, err error) {
	m, err := c.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	labels = append(labels, ofKustomizations)
	return m.Get(passesMetric+"_count", labels...), m.Get(passesMetric+"_sum", labels...), nil
}
