package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// shared is the one cluster of a test binary. It is the only mutable variable of the package, and there is no way without: the
// testing package hands nothing from TestMain to a test, and a cluster for each test would cost five
// seconds and 400 MB apiece.
var shared struct {
	sync.Mutex
	running bool // between the beginning and the end of Run
	cluster *Cluster
	err     error
}

// Run is the TestMain of a package whose tests need a control plane:
//
//	func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }
//
// It runs the tests and stops what Start started. Nothing is started unless a test asks.
func Run(m *testing.M) int {
	shared.Lock()
	shared.running = true
	shared.Unlock()
	defer func() {
		shared.Lock()
		defer shared.Unlock()
		shared.running = false
		if shared.cluster != nil {
			shared.cluster.Stop()
			_ = os.RemoveAll(shared.cluster.dir)
		}
	}()
	return m.Run()
}

// Start gives the package's cluster. The first test that asks starts it; when that fails, all tests that ask fail for the same
// reason. Tests share it, so each works in a Namespace of its own.
func Start(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.running {
		t.Fatal("kube.Start needs this in the package's tests: func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }")
	}
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = start(t.Context())
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

func start(ctx context.Context) (*Cluster, error) {
	binary, err := Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	cluster, err := Launch(ctx, Options{Binary: binary, Dir: dir})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return cluster, nil
}

// dirPrefix and the test binary's process id begin the name of the folder of its cluster.
const dirPrefix = "mooring-kube-"

// sweep removes the folders of test binaries that were killed before they could. Their processes died with them.
func sweep() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(dir)
		}
	}
}

// Namespace makes a namespace for this test and deletes it afterwards, without waiting until it is gone.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix(t.Name())},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace for the test: %v", err)
	}
	t.Cleanup(func() {
		// t.Context has ended when the cleanup runs.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		err := client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the test's namespace: %v", err)
		}
	})
	return made.Name
}

// namespacePrefix makes TestPlan/moves_an_object a name that a namespace may have: testplan-moves-an-object-.
func namespacePrefix(test string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(test))
	return strings.Trim(name[:min(len(name), 40)], "-") + "-"
}

// controllersRun waits until the namespace default has its ServiceAccount, which shows that the controllers work.
func (c *Cluster) controllersRun(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return c.poll(ctx, func() error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
