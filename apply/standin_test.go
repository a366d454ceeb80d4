package apply_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// istiod stands in for the part of istiod that the API server meets: the webhook that judges Istio's objects, over HTTPS with a certificate of its own,
// and the two controllers that put this certificate into the webhook configurations of its revision and arm the validating ones. They do what Istio
// 1.31 does in pkg/webhooks and pkg/webhooks/validation/controller: an update of the whole object under pilot-discovery's name.
//
// Its revision is the test's namespace, so that two tests do not meet.
type istiod struct {
	*fixture
	client  kubernetes.Interface
	objects dynamic.Interface
	port    int

	mu     sync.Mutex
	bundle []byte // guarded by mu once the controllers run: PEM, as istiod writes it

	down   atomic.Bool  // it hangs up on whoever calls
	judged atomic.Int64 // reviews that it answered
	pods   atomic.Int32 // available ones of its Deployment
}

// alwaysReject is the annotation with which istiod tries whether its own webhook is called.
const alwaysReject = "internal.istio.io/webhook-always-reject"

// newIstiod starts the webhook's server. Nothing calls it before its Service and its configuration are applied.
func newIstiod(f *fixture) *istiod {
	f.Helper()
	cfg := f.cluster.Config()
	cfg.UserAgent = "pilot-discovery/1.31"
	i := &istiod{fixture: f}
	i.pods.Store(1)
	var err error
	if i.client, err = kubernetes.NewForConfig(cfg); err != nil {
		f.Fatal(err)
	}
	if i.objects, err = dynamic.NewForConfig(cfg); err != nil {
		f.Fatal(err)
	}
	var certificate tls.Certificate
	certificate, i.bundle = selfSigned(f.T, "istiod."+f.ns+".svc")
	server := httptest.NewUnstartedServer(http.HandlerFunc(i.validate))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.Listener = &moody{Listener: server.Listener, down: &i.down}
	server.Config.ErrorLog = nil
	server.StartTLS()
	f.Cleanup(server.Close)
	i.port = server.Listener.Addr().(*net.TCPAddr).Port
	return i
}

// stop makes the server hang up on everybody, start makes it answer again.
func (i *istiod) stop() { i.down.Store(true) }

func (i *istiod) start() { i.down.Store(false) }

// rotate gives istiod another certificate, or at least other words for it: what matters is that it writes them.
func (i *istiod) rotate() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bundle = append([]byte("another one\n"), i.bundle...)
}

// moody accepts and hangs up while it is down. A port that was closed in between could be somebody else's by now.
type moody struct {
	net.Listener
	down *atomic.Bool
}

func (m *moody) Accept() (net.Conn, error) {
	for {
		conn, err := m.Listener.Accept()
		if err != nil || !m.down.Load() {
			return conn, err
		}
		_ = conn.Close()
	}
}

// validate refuses what names a host "wrong", and istiod's own probe.
func (i *istiod) validate(w http.ResponseWriter, req *http.Request) {
	// The API server keeps connections: the next call has to meet the listener again.
	w.Header().Set("Connection", "close")
	if i.down.Load() {
		panic(http.ErrAbortHandler)
	}
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i.judged.Add(1)
	object := &unstructured.Unstructured{}
	_ = object.UnmarshalJSON(review.Request.Object.Raw)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if object.GetAnnotations()[alwaysReject] == "true" || bytes.Contains(review.Request.Object.Raw, []byte(`"wrong"`)) {
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Message: "configuration is invalid: the test says so", Code: http.StatusBadRequest}
	}
	_ = json.NewEncoder(w).Encode(review)
}

// control runs its two controllers, and that of its Deployment, until the test ends or the returned function is called.
func (i *istiod) control() (end func()) {
	ctx, cancel := context.WithCancel(uncancelled(i.T))
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := i.reconcile(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errNotYet) {
				i.Logf("istiod: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	end = func() { cancel(); wg.Wait() }
	i.Cleanup(end)
	return end
}

var errNotYet = errors.New("webhook is not ready, retry")

// reconcile does what both controllers do at an event.
func (i *istiod) reconcile(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.deploy(ctx); err != nil {
		return err
	}
	mine := metav1.ListOptions{LabelSelector: "istio.io/rev=" + i.ns}
	mutating := i.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	injectors, err := mutating.List(ctx, mine)
	if err != nil {
		return err
	}
	for _, c := range injectors.Items {
		updated := false
		for n, hook := range c.Webhooks {
			if strings.HasSuffix(hook.Name, "sidecar-injector.istio.io") && !bytes.Equal(hook.ClientConfig.CABundle, i.bundle) {
				c.Webhooks[n].ClientConfig.CABundle, updated = i.bundle, true
			}
		}
		if updated {
			if _, err := mutating.Update(ctx, &c, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	validating := i.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	validators, err := validating.List(ctx, mine)
	if err != nil {
		return err
	}
	for _, c := range validators.Items {
		if err := i.arm(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

// arm brings one validating configuration as far as it can.
func (i *istiod) arm(ctx context.Context, c *admissionregv1.ValidatingWebhookConfiguration) error {
	bundle, open := false, false
	for _, hook := range c.Webhooks {
		bundle = bundle || !bytes.Equal(hook.ClientConfig.CABundle, i.bundle)
		open = open || hook.FailurePolicy != nil && *hook.FailurePolicy != admissionregv1.Fail
	}
	if !bundle && !open {
		return nil
	}
	arms := !open || i.isCalled(ctx)
	for n := range c.Webhooks {
		c.Webhooks[n].ClientConfig.CABundle = i.bundle
		if arms {
			fail := admissionregv1.Fail
			c.Webhooks[n].FailurePolicy = &fail
		}
	}
	if _, err := i.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Update(ctx, c, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if !arms {
		return errNotYet
	}
	return nil
}

// isCalled tries whether a Gateway that must be refused is.
func (i *istiod) isCalled(ctx context.Context) bool {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "Gateway",
		"metadata": map[string]any{
			"name": "invalid-gateway", "namespace": i.ns,
			"labels": map[string]any{"istio.io/rev": i.ns}, "annotations": map[string]any{alwaysReject: "true"},
		},
		"spec": map[string]any{},
	}}
	_, err := i.objects.Resource(gateways).Namespace(i.ns).Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err != nil && strings.Contains(err.Error(), "denied the request")
}

// stream is the installation as Git has it. The webhook is asked about the test's namespace alone. There is no way from the API server to a
// Service's address here, but one to a name.
func (i *istiod) stream(policy string) string {
	if policy != "" {
		policy = "failurePolicy: " + policy
	}
	return strings.NewReplacer("$PORT", strconv.Itoa(i.port), "$POLICY", policy, "$NS", i.ns).Replace(installation)
}

const installation = `
apiVersion: v1
kind: Service
metadata: {name: istiod, namespace: $NS, labels: {app: istiod}}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: $NS, labels: {app: istiod}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec: {containers: [{name: discovery, image: "pilot:1"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector-$NS, labels: {istio.io/rev: $NS, app: sidecar-injector}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: $NS, path: /inject, port: $PORT}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: istio-validator-$NS, labels: {istio.io/rev: $NS, app: istiod}}
webhooks:
- name: rev.validation.istio.io
  clientConfig: {service: {name: istiod, namespace: $NS, path: /validate, port: $PORT}}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [networking.istio.io, security.istio.io], apiVersions: ["*"], resources: ["*"]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  $POLICY
  sideEffects: None
  admissionReviewVersions: [v1]
`

// cleanWebhooks removes what would refuse the objects of a namespace that nobody answers for.
func (i *istiod) cleanWebhooks() {
	i.Cleanup(func() {
		_, _ = i.cluster.Kubectl(uncancelled(i.T), "delete", "validatingwebhookconfiguration", "istio-validator-"+i.ns, "--ignore-not-found")
		_, _ = i.cluster.Kubectl(uncancelled(i.T), "delete", "mutatingwebhookconfiguration", "istio-sidecar-injector-"+i.ns, "--ignore-not-found")
	})
}

// deploy writes the status of istiod's Deployment, as the controller would that is not here.
func (i *istiod) deploy(ctx context.Context) error {
	deployments := i.client.AppsV1().Deployments(i.ns)
	d, err := deployments.Get(ctx, "istiod", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	pods := i.pods.Load()
	if err != nil || d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == pods {
		return err
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: pods, AvailableReplicas: pods}
	if pods > 0 {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	}
	_, err = deployments.UpdateStatus(ctx, d, metav1.UpdateOptions{})
	return err
}

// isArmed waits until the validating webhook fails closed, with a certificate, and is called.
func (i *istiod) isArmed() {
	i.Helper()
	i.eventually("istiod's webhook is armed", func() bool {
		return i.validator("failurePolicy") == "Fail" && i.validator("clientConfig.caBundle") != "" && i.isCalled(i.Context())
	})
}

func (i *istiod) validator(field string) string {
	i.Helper()
	return i.kubectl("get", "validatingwebhookconfiguration", "istio-validator-"+i.ns, "-o", "jsonpath={.webhooks[0]."+field+"}")
}

func selfSigned(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
