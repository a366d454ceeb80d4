package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

// shop is one of each of what checks look at.
const shop = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: $NS, annotations: {team: shop}}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: $NS, labels: {app: web, version: v1}}
spec: {containers: [{name: web, image: web:1}]}
---
apiVersion: v1
kind: Secret
metadata: {name: web-tls, namespace: $NS, labels: {app: web}, annotations: {mooring.dev/prune: disabled, example.com/copy: aHVudGVyMg==}}
stringData: {tls.key: hunter2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: $NS}
data: {mesh: "not that of the mesh"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: $NS}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: $NS}
spec: {hosts: [web], http: [{route: [{destination: {host: web}}]}]}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: $NS}
spec: {mtls: {mode: STRICT}}
---
apiVersion: telemetry.istio.io/v1
kind: Telemetry
metadata: {name: web, namespace: $NS}
spec: {tracing: [{randomSamplingPercentage: 1}]}
`

// surroundings reads, and gives what there is in the test's namespace by "Kind/name".
func (f *fixture) surroundings() (*apply.Surroundings, map[string]*unstructured.Unstructured) {
	f.Helper()
	s, err := f.applier.Surroundings(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	here := map[string]*unstructured.Unstructured{}
	for _, u := range s.Objects {
		if u.GetNamespace() == f.ns || u.GetName() == f.ns {
			here[u.GetKind()+"/"+u.GetName()] = u
		}
	}
	return s, here
}

func TestSurroundings(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.kubectl("apply", "-f", f.write(shop)) // on the client's side, which leaves an annotation with all that was written
	s, here := f.surroundings()
	for _, name := range []string{
		"Namespace/" + f.ns, "Service/web", "Pod/web-0", "Secret/web-tls", "Deployment/web", "VirtualService/web", "PeerAuthentication/default", "Telemetry/web",
	} {
		u := here[name]
		if u == nil {
			t.Errorf("%s is not there", name)
			continue
		}
		managers := u.GetManagedFields()
		istio := strings.Contains(u.GetAPIVersion(), "istio.io/")
		if istio != (len(managers) == 1 && managers[0].Manager == "kubectl-client-side-apply" && managers[0].Time != nil && managers[0].FieldsV1 == nil) ||
			!istio && managers != nil {
			t.Errorf("%s was kept with managers %v, want those of Istio's kinds alone, without fields", name, managers)
		}
		if u.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
			t.Errorf("%s was kept with its history: %v", name, u.Object["metadata"])
		}
		_, hasSpec := u.Object["spec"]
		if metadata := s.MetadataOnly[u.GroupVersionKind().GroupKind()]; hasSpec == metadata {
			t.Errorf("%s: spec %v, metadata only %v", name, hasSpec, metadata)
		}
	}
	if here["ConfigMap/istio"] != nil {
		t.Error("a ConfigMap of a user was read")
	}
	for gk, why := range s.Unread {
		if gk.Kind != "ConfigMap" {
			t.Errorf("%s is unread: %s", gk, why)
		}
	}
	if text := fmt.Sprint(here["Secret/web-tls"].Object); strings.Contains(text, "aHVudGVyMg") || strings.Contains(text, "hunter2") {
		t.Errorf("what the Secret holds was read: %s", text)
	}
	if secret := here["Secret/web-tls"]; secret.GetAnnotations()["mooring.dev/prune"] != "disabled" || secret.GetLabels()["app"] != "web" {
		t.Errorf("the Secret's own metadata: %v", secret.Object)
	}
	if got := here["Service/web"].GetAnnotations()["team"]; got != "shop" {
		t.Errorf("the annotation of the Service is %q", got)
	}
}

func TestWhatDidNotChangeIsTheSameObject(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.kubectl("apply", "-f", f.write(shop))
	_, first := f.surroundings()
	f.kubectl("label", "service", "web", "tier=front")
	f.kubectl("delete", "virtualservice", "web")
	f.kubectl("label", "pod", "web-0", "tier=front")
	f.kubectl("create", "service", "externalname", "new", "--external-name=example.com")
	_, second := f.surroundings()
	for name, u := range first {
		moved := slices.Contains([]string{"Service/web", "Pod/web-0", "VirtualService/web"}, name)
		// The control plane's controllers may write to the others in between.
		if again := second[name]; again == u == moved && (moved || again != nil && again.GetResourceVersion() == u.GetResourceVersion()) {
			t.Errorf("%s moved: %v; it is the same object: %v", name, moved, again == u)
		}
	}
	if second["VirtualService/web"] != nil || second["Service/new"] == nil || second["Service/web"].GetLabels()["tier"] != "front" {
		t.Error("the second reading is not what lives")
	}
}

// What a user may not list is not known; the rest is.
func TestWhatMayNotBeListedIsUnread(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.kubectl("apply", "-f", f.write(shop))
	f.kubectl("apply", "-f", f.write(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NS}
rules:
- {apiGroups: [""], resources: [services], verbs: [list]}
- {apiGroups: [networking.istio.io], resources: [virtualservices], verbs: [list]}
`))
	f.Cleanup(func() { f.cleanup("clusterrole", "clusterrolebinding") })
	f.kubectl("create", "clusterrolebinding", f.ns, "--clusterrole="+f.ns, "--user="+f.ns)
	f.applier = f.newApplier(f.cluster.ConfigFor(f.ns))
	var s *apply.Surroundings
	var here map[string]*unstructured.Unstructured
	f.eventually("the rights are there", func() bool {
		s, here = f.surroundings()
		return here["Service/web"] != nil && here["VirtualService/web"] != nil
	})
	if len(here) != 2 {
		t.Errorf("read %v", here)
	}
	for _, gk := range []schema.GroupKind{{Kind: "Secret"}, {Kind: "Pod"}, {Kind: "Namespace"}, {Kind: "ConfigMap"}, {Group: "networking.istio.io", Kind: "Gateway"}} {
		if why := s.Unread[gk]; !strings.Contains(why, "forbidden") {
			t.Errorf("%s is unread because %q, want a word of rights", gk, why)
		}
	}
	if why, unread := s.Unread[schema.GroupKind{Kind: "Service"}]; unread {
		t.Errorf("Services are unread: %s", why)
	}
	if _, unread := s.Unread[schema.GroupKind{Group: "example.com", Kind: "Other"}]; unread {
		t.Error("a kind that nobody asks for is unread")
	}
}

// The configuration of the mesh is read by its name, and that of the revisions whose webhooks there are.
func TestMeshConfigOfEachRevisionIsRead(t *testing.T) {
	f := newFixture(t)
	file := f.write(`
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "trustDomain: a"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-$NS, namespace: istio-system}
data: {mesh: "trustDomain: b"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: istio-system}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: $NS, labels: {istio.io/rev: $NS}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: $NS-other}
`)
	if _, err := f.cluster.Kubectl(t.Context(), "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	f.Cleanup(func() {
		f.cleanup("mutatingwebhookconfiguration")
		if _, err := f.cluster.Kubectl(uncancelled(t), "delete", "mutatingwebhookconfiguration/"+f.ns+"-other", "namespace/istio-system"); err != nil {
			t.Error(err)
		}
	})
	s, err := f.applier.Surroundings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range s.Objects {
		if u.GetKind() == "ConfigMap" || u.GetKind() == "MutatingWebhookConfiguration" {
			names = append(names, u.GetKind()+"/"+u.GetName())
		}
	}
	slices.Sort(names)
	if want := []string{"ConfigMap/istio", "ConfigMap/istio-" + f.ns, "MutatingWebhookConfiguration/" + f.ns}; !slices.Equal(names, want) {
		t.Errorf("read %v, want %v", names, want)
	}
	if s.Unread[schema.GroupKind{Kind: "ConfigMap"}] == "" {
		t.Error("that other ConfigMaps were not read is not said")
	}
}

// stopper is a transport that may answer in the server's place.
type stopper struct {
	http.RoundTripper
	before func(*http.Request) error
}

func (s *stopper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := s.before(req); err != nil {
		return nil, err
	}
	return s.RoundTripper.RoundTrip(req)
}

func (f *fixture) stopped(before func(*http.Request) error) *apply.Applier {
	f.Helper()
	cfg := f.cluster.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &stopper{next, before} })
	return f.newApplier(cfg)
}

// A dead server of one kind costs that kind; one of discovery costs the reading.
func TestWhatFailsIsUnread(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.kubectl("apply", "-f", f.write(shop))
	f.applier = f.stopped(func(req *http.Request) error {
		if strings.HasSuffix(req.URL.Path, "/virtualservices") {
			return errors.New("the conversion webhook is away")
		}
		if strings.HasSuffix(req.URL.Path, "/gateways") {
			panic("a library trips")
		}
		return nil
	})
	s, here := f.surroundings()
	if why := s.Unread[schema.GroupKind{Group: "networking.istio.io", Kind: "VirtualService"}]; !strings.Contains(why, "the conversion webhook is away") {
		t.Errorf("VirtualService is unread because %q", why)
	}
	if why := s.Unread[schema.GroupKind{Group: "networking.istio.io", Kind: "Gateway"}]; !strings.Contains(why, "a library trips") {
		t.Errorf("Gateway is unread because %q", why)
	}
	if here["Service/web"] == nil || here["PeerAuthentication/default"] == nil {
		t.Error("the rest was not read")
	}
	f.applier = f.stopped(func(req *http.Request) error {
		if req.URL.Path == "/apis" {
			return errors.New("the API server is away")
		}
		return nil
	})
	if s, err := f.applier.Surroundings(t.Context()); err == nil || s != nil || !strings.Contains(err.Error(), "the API server is away") {
		t.Errorf("without discovery: %v, %v", s, err)
	}
}

// Many that ask at once cost two readings, and each gets one that is no older than its question.
func TestReadingsAreShared(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	discovered, first := 0, make(chan struct{})
	started := make(chan struct{})
	f.applier = f.stopped(func(req *http.Request) error {
		if req.URL.Path == "/apis" {
			mu.Lock()
			discovered++
			n := discovered
			mu.Unlock()
			if n == 1 {
				close(started)
				<-first
			}
		}
		return nil
	})
	var g sync.WaitGroup
	ask := func() {
		g.Go(func() {
			if _, err := f.applier.Surroundings(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ask()
	<-started
	for range 20 {
		ask()
	}
	impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // and in this time the others have asked
	defer cancel()
	if _, err := f.applier.Surroundings(impatient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that cannot wait: %v", err)
	}
	close(first)
	g.Wait()
	if discovered != 2 {
		t.Errorf("%d readings for 21 questions, want 2", discovered)
	}
	f.kubectl("create", "service", "externalname", "new", "--external-name=example.com")
	if _, here := f.surroundings(); here["Service/new"] == nil {
		t.Error("a question after the readings was answered with an older one")
	}
}

// A reading of a large cluster is most of what an agent has in memory. One that nobody came back for is let go.
func TestReadingIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !apply.KeptWhile(func() { time.Sleep(apply.KeepFor - time.Second) }) {
			t.Error("a reading is let go while the next commit is likely to come")
		}
		if apply.KeptWhile(func() { time.Sleep(apply.KeepFor + time.Second) }) {
			t.Error("a reading is kept although nobody asked for another one")
		}
	})
}
