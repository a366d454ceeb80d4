package watch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/mooring-dev/mooring/apply/watch"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

const label = "test.mooring.dev/owner"

var (
	configMaps  = watch.Kind{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Name: "ConfigMap"}
	deployments = watch.Kind{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Name: "Deployment"}
)

// ear hears what a Watcher tells about one namespace.
type ear struct {
	*testing.T
	*watch.Watcher
	cluster *kube.Cluster
	ns      string
	wire    *wire

	mu     sync.Mutex
	heard  []string
	broken []string
	texts  int // how many were gathered
}

func listen(t *testing.T) *ear {
	t.Helper()
	cluster := kube.Start(t)
	e := &ear{T: t, cluster: cluster, ns: cluster.Namespace(t), wire: &wire{}}
	cfg := cluster.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		e.wire.next = next
		return e.wire
	})
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.Watcher = watch.New(client, watch.Options{Label: label, Changed: e.changed, Broken: e.broke, Gather: e.gather})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Watcher.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return e
}

func (e *ear) changed(c watch.Change) {
	if c.Namespace != e.ns {
		return
	}
	said := c.Owner + " " + c.Kind.Name + "/" + c.Name
	switch {
	case c.Gone:
		said += " gone"
	case c.Quiet:
		said += " quiet"
	case c.Before == "":
		said += " new"
	default:
		said += " changed"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, said)
}

func (e *ear) broke(k watch.Kind, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = append(e.broken, fmt.Sprintf("%s %t", k.Name, err != nil))
}

// gather gives all texts other memory.
func (e *ear) gather(all []*string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range all {
		*s = strings.Clone(*s)
		e.texts++
	}
}

// rests makes the watches rest, and wants that to do something.
func (e *ear) rests() {
	e.Helper()
	e.Rest()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.texts == 0 {
		e.Error("no texts were gathered")
	}
	e.texts = 0
}

// hears waits until just this was told since the last time.
func (e *ear) hears(want ...string) {
	e.Helper()
	var got []string
	e.eventually(func() error {
		e.mu.Lock()
		got = slices.Clone(e.heard)
		e.mu.Unlock()
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("told (-want +got):\n%s", diff)
		}
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = e.heard[len(got):]
}

// knows waits until these are the owner's objects.
func (e *ear) knows(k watch.Kind, owner string, want ...string) {
	e.Helper()
	e.eventually(func() error {
		found, latest, ok := e.Objects(k, owner)
		if !ok || latest == "" {
			return fmt.Errorf("%s is not known", k.Name)
		}
		var got []string
		for name := range found {
			got = append(got, name.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("known (-want +got):\n%s", diff)
		}
		return nil
	})
}

func (e *ear) eventually(right func() error) {
	e.Helper()
	poll.Await(e, 30*time.Second, "it is told and known", right)
}

func (e *ear) kubectl(args ...string) {
	e.Helper()
	if _, err := e.cluster.Kubectl(e.Context(), append([]string{"-n", e.ns}, args...)...); err != nil {
		e.Fatal(err)
	}
}

// owned makes a ConfigMap with the label.
func (e *ear) owned(name, owner string) {
	e.Helper()
	e.kubectl("create", "configmap", name, "--from-literal=k=v")
	e.kubectl("label", "configmap", name, label+"="+owner)
}

// owner is one of this test alone: the control plane is shared.
func (e *ear) owner(name string) string { return e.ns + "-" + name }

func TestEachChangeIsToldOnce(t *testing.T) {
	e := listen(t)
	one, two := e.owner("one"), e.owner("two")
	e.owned("early", one)
	if _, _, ok := e.Objects(configMaps, one); ok {
		t.Error("something is known of a kind that nobody wants")
	}
	e.Want(one, []watch.Kind{configMaps, deployments})
	e.hears(one + " ConfigMap/early new")
	e.knows(configMaps, one, "early")
	e.rests()
	e.knows(configMaps, one, "early")

	e.kubectl("create", "configmap", "strange", "--from-literal=k=v") // has no label
	e.owned("late", one)
	e.kubectl("patch", "configmap", "late", "--type=merge", "-p", `{"data":{"k":"w"}}`)
	e.kubectl("label", "configmap", "late", "--overwrite", label+"="+two)
	e.kubectl("label", "configmap", "late", label+"-")
	e.kubectl("delete", "configmap", "early")
	e.hears(one+" ConfigMap/late new", one+" ConfigMap/late changed", one+" ConfigMap/late gone", two+" ConfigMap/late new", two+" ConfigMap/late gone", one+" ConfigMap/early gone")

	e.kubectl("create", "deployment", "web", "--image=web")
	e.kubectl("label", "deployment", "web", label+"="+one)
	e.knows(deployments, one, "web")
	e.rests()
	e.kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1}}`)
	e.kubectl("annotate", "deployment", "web", "by=hand")
	e.kubectl("scale", "deployment", "web", "--replicas=2")
	e.hears(one+" Deployment/web new", one+" Deployment/web quiet", one+" Deployment/web changed", one+" Deployment/web changed")

	// A watch that nobody wants ends, and one that is wanted again begins anew.
	e.Want(two, []watch.Kind{configMaps})
	e.Want(one, nil)
	if _, _, ok := e.Objects(deployments, one); ok {
		t.Error("Deployments are still known")
	}
	e.knows(configMaps, two)
	e.Want(one, []watch.Kind{deployments})
	e.hears(one + " Deployment/web new")
}

// A connection that breaks, and a server that has forgotten what came since (410 Gone): the watch begins anew and tells what happened meanwhile. Nothing that
// is still there is taken for gone.
func TestBrokenWatchTellsWhatItMissed(t *testing.T) {
	e := listen(t)
	one := e.owner("one")
	for _, name := range []string{"stays", "changes", "goes"} {
		e.owned(name, one)
	}
	e.Want(one, []watch.Kind{configMaps})
	e.knows(configMaps, one, "changes", "goes", "stays")
	e.mu.Lock()
	e.heard = nil
	e.mu.Unlock()

	e.wire.cut(http.StatusServiceUnavailable)
	e.kubectl("patch", "configmap", "changes", "--type=merge", "-p", `{"data":{"k":"w"}}`)
	e.kubectl("delete", "configmap", "goes")
	e.owned("comes", one)
	e.eventually(func() error {
		if _, _, ok := e.Objects(configMaps, one); ok {
			return fmt.Errorf("the kind is still said to be known")
		}
		return nil
	})
	e.wire.mend()
	e.knows(configMaps, one, "changes", "comes", "stays")
	e.eventually(func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		got := slices.Sorted(slices.Values(e.heard))
		return told(cmp.Diff([]string{one + " ConfigMap/changes changed", one + " ConfigMap/comes new", one + " ConfigMap/goes gone"}, got))
	})
	e.mu.Lock()
	if diff := cmp.Diff([]string{"ConfigMap true", "ConfigMap false"}, e.broken); diff != "" {
		t.Errorf("broken watches that were told (-want +got):\n%s", diff)
	}
	e.mu.Unlock()
}

func told(diff string) error {
	if diff != "" {
		return fmt.Errorf("told (-want +got):\n%s", diff)
	}
	return nil
}

// A kind whose definition goes is not known any more, and is again when it comes back.
func TestKindThatGoesAndComesBack(t *testing.T) {
	e := listen(t)
	one := e.owner("one")
	group := e.ns + ".test.mooring.dev"
	file := t.TempDir() + "/crd.yaml"
	definition := strings.ReplaceAll(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, "GROUP", group)
	if err := os.WriteFile(file, []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	install := func() {
		e.kubectl("apply", "-f", file)
		e.kubectl("wait", "--for=condition=Established", "crd/widgets."+group)
	}
	widgets := watch.Kind{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}, Name: "Widget"}
	install()
	t.Cleanup(func() {
		_, _ = e.cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "crd", "widgets."+group, "--ignore-not-found")
	})
	e.Want(one, []watch.Kind{widgets, configMaps})
	e.knows(widgets, one)
	e.kubectl("delete", "crd", "widgets."+group)
	e.eventually(func() error {
		if _, _, ok := e.Objects(widgets, one); ok {
			return fmt.Errorf("the kind is still said to be known")
		}
		return nil
	})
	e.knows(configMaps, one) // the rest goes on
	install()
	e.knows(widgets, one)
}

// wire can break the connections to the API server. The first watch after it was mended is told that the server has forgotten its version.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	status int  // that all requests are answered with; 0 lets them through
	gone   bool // the next watch is answered with 410
	open   []io.Closer
}

var reasons = map[int]metav1.StatusReason{http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusGone: metav1.StatusReasonExpired}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	watching := req.URL.Query().Get("watch") != ""
	w.mu.Lock()
	status := w.status
	if watching && status == 0 && w.gone {
		status, w.gone = http.StatusGone, false
	}
	w.mu.Unlock()
	if status != 0 {
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"broken","reason":%q,"code":%d}`, reasons[status], status)
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
	res, err := w.next.RoundTrip(req)
	if err == nil && watching {
		w.mu.Lock()
		w.open = append(w.open, res.Body)
		w.mu.Unlock()
	}
	return res, err
}

func (w *wire) cut(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
	for _, body := range w.open {
		_ = body.Close()
	}
	w.open = nil
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status, w.gone = 0, true
}
