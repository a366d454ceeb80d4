package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/port"
)

// controllers are the few of kube-controller-manager's that somebody would miss: without the first two a deleted
// namespace stays Terminating for ever and owned objects stay; the third gives every namespace its default
// ServiceAccount; the fourth fills aggregated ClusterRoles. There is no kubelet and no Deployment controller: a workload never becomes ready
// by itself.
const controllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller,clusterrole-aggregation-controller"

// startTimeout is generous: a start takes about five seconds, and tests share two cores.
const startTimeout = 2 * time.Minute

// Options of Launch.
type Options struct {
	// Binary is what Build gave.
	Binary string
	// Dir is an empty folder for data, keys, logs and the kubeconfig. Launch writes nothing outside it and does not remove it.
	Dir string
	// Detach lets the control plane outlive this process; see Up.
	Detach bool
}

// Cluster is a running control plane.
type Cluster struct {
	dir    string
	binary string
	config *rest.Config

	// mu guards what RestartAPIServer exchanges.
	mu        sync.Mutex
	etcd      *child.Process
	apiserver *child.Process
	manager   *child.Process
	port      *port.Reservation // with --permit-port-sharing the API server binds it as well
	detach    bool
}

// Launch starts a control plane and answers when it is ready, its controllers run and the CRDs are served. On an error nothing
// runs any more. The context is for the start alone: the cluster lives until Stop.
func Launch(ctx context.Context, o Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	c := &Cluster{dir: o.Dir, binary: o.Binary, detach: o.Detach}
	if err := c.launch(ctx); err != nil {
		err = fmt.Errorf("start a control plane in %s: %w%s", o.Dir, err, c.tails())
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) launch(ctx context.Context) error {
	id, err := newIdentity(c.dir)
	if err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	if c.port, err = port.Reserve(); err != nil {
		return err
	}
	if err := c.configure(id); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := os.Symlink(c.binary, c.KubectlPath()); err != nil {
		return err
	}
	// Sockets are relative to the folder that all parts run in: a path of a socket may have 107 bytes, and a
	// work tree's is easily longer.
	if c.etcd, err = run(c.binary, "etcd", c.dir, c.detach,
		"--name=etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=unix://etcd.sock", "--advertise-client-urls=unix://etcd.sock",
		"--listen-peer-urls=unix://peer.sock", "--initial-advertise-peer-urls=unix://peer.sock", "--initial-cluster=etcd=unix://peer.sock",
	); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	if c.manager, err = run(c.binary, "kube-controller-manager", c.dir, c.detach,
		"--kubeconfig="+filepath.Join(c.dir, "controllers.kubeconfig"), "--controllers="+controllers,
		"--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000",
	); err != nil {
		return err
	}
	if err := InstallCRDs(ctx, c.config); err != nil {
		return fmt.Errorf("install CRDs: %w", err)
	}
	if err := c.controllersRun(ctx); err != nil {
		return fmt.Errorf("wait for the controllers: %w", err)
	}
	return nil
}

// startAPIServer starts the API server and waits until it says that it is ready.
func (c *Cluster) startAPIServer(ctx context.Context) (err error) {
	in := func(name string) string { return filepath.Join(c.dir, name) }
	c.apiserver, err = run(c.binary, "kube-apiserver", c.dir, c.detach,
		"--etcd-servers=unix://etcd.sock", "--bind-address=127.0.0.1", "--permit-port-sharing",
		"--secure-port="+strconv.Itoa(c.port.Port),
		// The machine may have no other address, and an Endpoints object may not name a loopback one.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file="+in("serving.crt"), "--tls-private-key-file="+in("serving.key"), "--cert-dir="+c.dir,
		"--service-account-key-file="+in("sa.key"), "--service-account-signing-key-file="+in("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC", "--token-auth-file="+in("tokens.csv"),
		// Without it an orderly end waits a whole minute for those who watch; with it, two seconds.
		"--shutdown-send-retry-after",
		// It would refuse pods until their account exists, and no pod ever runs here.
		"--disable-admission-plugins=ServiceAccount",
	)
	if err != nil {
		return err
	}
	return c.poll(ctx, func() error { return ready(ctx, c.config) })
}

// poll calls ask until it has no error. It gives up when ctx does or a part of the control plane has ended.
func (c *Cluster) poll(ctx context.Context, ask func() error) error {
	return poll.Until(ctx, "the control plane answers", func() error {
		err := ask()
		if err == nil {
			return nil
		}
		for _, p := range c.processes() {
			if ended := p.Ended(); ended != nil {
				return poll.Final(ended)
			}
		}
		return err
	})
}

// configure writes the kubeconfigs of the admin and of the controllers.
func (c *Cluster) configure(id identity) error {
	host := "https://127.0.0.1:" + strconv.Itoa(c.port.Port)
	write := func(name, user, token string) error {
		config := clientcmdapi.NewConfig()
		config.Clusters["mooring"] = &clientcmdapi.Cluster{Server: host, CertificateAuthorityData: id.ca}
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts["mooring"] = &clientcmdapi.Context{Cluster: "mooring", AuthInfo: user}
		config.CurrentContext = "mooring"
		return clientcmd.WriteToFile(*config, filepath.Join(c.dir, name))
	}
	if err := errors.Join(
		write("kubeconfig", "admin", id.admin),
		write("controllers.kubeconfig", "controllers", id.controller),
	); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS = -1 // a test measures the product's patience, not the client's
	c.config = config
	return nil
}

// RestartAPIServer ends the API server in order and starts it again, on the same port and data, as an upgrade of
// a control plane does. Whoever watches is cut off; requests in between are refused.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.apiserver.Stop(ctx) // one that was killed because it took too long is gone, too
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("restart the API server: %w%s", err, c.tails())
	}
	return nil
}

// Stop ends all parts at once. The data are of no use to anybody afterwards, so there is no reason to be gentle.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes() {
		p.Kill()
	}
	if c.port != nil {
		c.port.Release()
		c.port = nil
	}
}

// processes that were started, the ones that need the others first.
func (c *Cluster) processes() []*child.Process {
	var started []*child.Process
	for _, p := range []*child.Process{c.manager, c.apiserver, c.etcd} {
		if p != nil {
			started = append(started, p)
		}
	}
	return started
}

func (c *Cluster) tails() string {
	var b strings.Builder
	for _, p := range c.processes() {
		b.WriteString("\n" + p.LogTail(25))
	}
	return b.String()
}

// Config of the admin, who may do everything. Every call gives a new one; the client's own rate limit is off.
func (c *Cluster) Config() *rest.Config {
	return rest.CopyConfig(c.config)
}

// ConfigFor acts as the named user through impersonation, so that RBAC can be tested. A ServiceAccount is
// system:serviceaccount:NAMESPACE:NAME and needs no groups: the API server adds those that it always has.
func (c *Cluster) ConfigFor(user string, groups ...string) *rest.Config {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// Kubeconfig is the path of the admin's kubeconfig.
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.dir, "kubeconfig")
}

// KubectlPath is a kubectl of the API server's own version.
func (c *Cluster) KubectlPath() string {
	return filepath.Join(c.dir, "kubectl")
}

// Kubectl runs kubectl as the admin and gives what it wrote to stdout. An error holds what it wrote to stderr.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.KubectlPath(), args...)
	// Its cache of the API's kinds would otherwise lie in the user's home, and outlive the cluster.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "KUBECACHEDIR="+filepath.Join(c.dir, "kubectl-cache"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
