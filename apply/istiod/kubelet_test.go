package istiod_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	//lint:ignore SA1019 k8s.io/streaming, which takes its place, is no direct requirement of this module, and has the same code
	"k8s.io/apimachinery/pkg/util/httpstream"
	//lint:ignore SA1019 k8s.io/streaming, which takes its place, is no direct requirement of this module, and has the same code
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/kubernetes"

	pilot "github.com/mooring-dev/mooring/test/istiod"
)

// kubelet plays the part of a kubelet that port-forwards have: the API server hands them on to it, and it connects to the Pod from the Pod's
// own loopback. Here the Pods are processes of this machine, so that is true of them as well.
type kubelet struct {
	*world
	client kubernetes.Interface
	node   string

	mu    sync.Mutex
	ports map[string]map[string]string // by "namespace/pod" and port: the address
	asked map[string]int               // questions for the proxies, by "namespace/pod"
	most  int                          // port-forwards at a time
	now   int
}

func newKubelet(w *world) *kubelet {
	w.t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.Config())
	if err != nil {
		w.t.Fatal(err)
	}
	k := &kubelet{world: w, client: client, node: w.namespace, ports: make(map[string]map[string]string), asked: make(map[string]int)}
	server := httptest.NewTLSServer(k)
	w.t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	number, _ := strconv.Atoi(port)
	node, err := client.CoreV1().Nodes().Create(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	if _, err := client.CoreV1().Nodes().UpdateStatus(w.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = client.CoreV1().Nodes().Delete(w.t.Context(), k.node, metav1.DeleteOptions{}) })
	_, err = client.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pilot.SystemNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	return k
}

// pod is a Pod in which an istiod runs; nil for one in which nothing does.
func (k *kubelet) pod(name string, p *pilot.Istiod, labels map[string]string, isReady bool) {
	k.t.Helper()
	all := map[string]string{"app": "istiod"}
	for key, value := range labels {
		all[key] = value
	}
	zero := int64(0)
	pods := k.client.CoreV1().Pods(pilot.SystemNamespace)
	pod, err := pods.Create(k.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all},
		Spec: corev1.PodSpec{
			NodeName: k.node, TerminationGracePeriodSeconds: &zero,
			Containers: []corev1.Container{{Name: "discovery", Image: "istiod"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "127.0.0.1"
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	if _, err := pods.UpdateStatus(k.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		k.t.Fatal(err)
	}
	if p != nil {
		k.mu.Lock()
		k.ports[pilot.SystemNamespace+"/"+name] = map[string]string{"15014": p.Monitoring, "8080": p.HTTP}
		k.mu.Unlock()
	}
	k.t.Cleanup(func() { k.remove(name) })
}

// remove is for cleanups as well, when the test's own context has ended.
func (k *kubelet) remove(name string) {
	if _, err := k.cluster.Kubectl(withoutCancel(k.t), "delete", "pod", name, "-n", pilot.SystemNamespace, "--ignore-not-found", "--force", "--grace-period=0"); err != nil {
		k.t.Error(err)
	}
}

// closed makes a Pod's port one that nobody listens on.
func (k *kubelet) closed(name, port string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.ports[pilot.SystemNamespace+"/"+name], port)
}

// ServeHTTP takes POST /portForward/NAMESPACE/POD[/UID], and upgrades to SPDY.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 3 || parts[0] != "portForward" {
		http.Error(w, "this kubelet forwards ports, and nothing else", http.StatusNotFound)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 10)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replySent <-chan struct{}) error {
		go func() {
			<-replySent // what is sent earlier is thrown away by the other side
			streams <- s
		}()
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	k.mu.Lock()
	k.now++
	k.most = max(k.most, k.now)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.now--
		k.mu.Unlock()
	}()
	faults, data := make(map[string]httpstream.Stream), make(map[string]httpstream.Stream)
	for {
		select {
		case <-connection.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				faults[id] = s
			} else {
				data[id] = s
			}
			if faults[id] != nil && data[id] != nil {
				go k.carry(parts[1]+"/"+parts[2], data[id], faults[id])
			}
		}
	}
}

// carry connects a stream with the port of the Pod.
func (k *kubelet) carry(pod string, data, faults httpstream.Stream) {
	defer func() { _, _ = faults.Close(), data.Close() }()
	port := data.Headers().Get(corev1.PortHeader)
	k.mu.Lock()
	at, listens := k.ports[pod][port]
	k.mu.Unlock()
	c, err := net.Dial("tcp4", at)
	if !listens || err != nil {
		_, _ = fmt.Fprintf(faults, "failed to connect to localhost:%s inside namespace: dial tcp4 127.0.0.1:%s: connect: connection refused", port, port)
		return
	}
	go func() {
		_, _ = io.Copy(io.MultiWriter(c, questions{k, pod}), data)
		_ = c.Close()
	}()
	_, _ = io.Copy(data, c)
}

// questions counts the requests to a Pod for what its proxies have.
type questions struct {
	kubelet *kubelet
	pod     string
}

func (q questions) Write(b []byte) (int, error) {
	q.kubelet.mu.Lock()
	defer q.kubelet.mu.Unlock()
	q.kubelet.asked[q.pod] += bytes.Count(b, []byte("GET /debug/syncz"))
	return len(b), nil
}

// questionsTo a Pod so far.
func (k *kubelet) questionsTo(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[pilot.SystemNamespace+"/"+name]
}

// forwards are the port-forwards that are open now, and the most at a time.
func (k *kubelet) forwards() (now, most int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.most
}
