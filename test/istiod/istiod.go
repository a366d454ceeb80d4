package istiod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"istio.io/istio/pilot/cmd/pilot-discovery/app"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/kube"
)

// asIstiod in the environment makes the test's own binary an istiod.
const asIstiod = "MOORING_TEST_AS_ISTIOD"

// SystemNamespace is where istiod thinks that it runs.
const SystemNamespace = "istio-system"

// readyTimeout is generous: a first start shares the machine with compilers.
const readyTimeout = time.Minute

// Run is the TestMain of a package whose tests need an istiod, in place of kube.Run:
//
//	func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }
//
// It gives the exit code.
func Run(m *testing.M) int {
	if os.Getenv(asIstiod) == "" {
		return kube.Run(m)
	}
	command := app.NewRootCommand()
	command.SetArgs(os.Args[1:])
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Options of an istiod.
type Options struct {
	// Env are more variables, as PILOT_DEBOUNCE_AFTER=20ms.
	Env []string
	// Args are more flags of pilot-discovery discovery.
	Args []string
	// Name is the pod's name; "istiod" when empty.
	Name string
}

// Istiod is a running process.
type Istiod struct {
	// XDS is the address of plain gRPC discovery, HTTP that of /debug and /ready, Monitoring that of /metrics: host:port each.
	XDS, HTTP, Monitoring string

	process *child.Process
	// start makes the process again, at the same addresses.
	start func(context.Context) (*child.Process, error)
}

// Start starts an istiod that reads the cluster, and returns once it is ready. It ends with the test at the latest; when the test has failed, the end of its log is
// in the test's.
func Start(t testing.TB, cluster *kube.Cluster, o Options) *Istiod {
	t.Helper()
	if err := systemNamespace(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	i, err := launch(t.Context(), cluster.Kubeconfig(), dir, o)
	for attempt := 0; err != nil && attempt < 2 && addressTaken(err); attempt++ {
		i, err = launch(t.Context(), cluster.Kubeconfig(), dir, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		i.Kill()
		if t.Failed() {
			t.Log(i.LogTail(60))
		}
	})
	return i
}

// systemNamespace makes istiod's own namespace, which its leases and certificates go to.
func systemNamespace(ctx context.Context, cluster *kube.Cluster) error {
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: SystemNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make namespace %s: %w", SystemNamespace, err)
	}
	return nil
}

// addressTaken says whether somebody else took a port between its choice and its use.
func addressTaken(err error) bool { return strings.Contains(err.Error(), "address already in use") }

// launch starts the process and waits until it is ready. On an error nothing runs.
func launch(ctx context.Context, kubeconfig, dir string, o Options) (*Istiod, error) {
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	i := &Istiod{XDS: addresses[0], HTTP: addresses[1], Monitoring: addresses[2]}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	name := cmp.Or(o.Name, "istiod")
	i.start = func(ctx context.Context) (*child.Process, error) {
		args := []string{
			"discovery", "--kubeconfig", kubeconfig, "--grpcAddr", i.XDS, "--httpAddr", i.HTTP, "--monitoringAddr", i.Monitoring,
			"--httpsAddr", "", "--secureGRPCAddr", "", "--ctrlz_port", "0",
		}
		command := exec.Command(self, append(args, o.Args...)...)
		command.Dir = dir
		command.Env = slices.Concat(os.Environ(), []string{
			asIstiod + "=1", "POD_NAME=" + name, "POD_NAMESPACE=" + SystemNamespace, "INJECTION_WEBHOOK_CONFIG_NAME=", "VALIDATION_WEBHOOK_CONFIG_NAME=",
		}, o.Env)
		process, err := child.Start(name, filepath.Join(dir, name+".log"), command)
		if err != nil {
			return nil, err
		}
		if err := i.awaitReady(ctx, process); err != nil {
			process.Kill()
			return nil, fmt.Errorf("start %s: %w\n%s", name, err, process.LogTail(30))
		}
		return process, nil
	}
	i.process, err = i.start(ctx)
	return i, err
}

func (i *Istiod) awaitReady(ctx context.Context, process *child.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, errors.New("it is not ready in time"))
	defer cancel()
	return process.Await(ctx, "it says that it is ready", func() error {
		if !answers(ctx, "http://"+i.HTTP+"/ready") {
			return errors.New("not yet")
		}
		return nil
	})
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// freeAddresses are on loopback, and different.
func freeAddresses(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		out = append(out, l.Addr().String())
	}
	return out, nil
}

// PID is the number of the process, for a signal (SIGSTOP makes an istiod that hangs).
func (i *Istiod) PID() int { return i.process.PID() }

// Kill ends it at once; its proxies are cut off.
func (i *Istiod) Kill() { i.process.Kill() }

// Restart starts it again after Kill, at the same addresses, and returns once it is ready.
func (i *Istiod) Restart(t testing.TB) {
	t.Helper()
	process, err := i.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.process = process
}

// LogTail is the end of its log.
func (i *Istiod) LogTail(lines int) string { return i.process.LogTail(lines) }
