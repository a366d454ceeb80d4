package istiod_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	pilot "github.com/mooring-dev/mooring/test/istiod"
)

func withoutCancel(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

// as asks as a user with the rights that the cluster gives him; empty for one who may do anything.
func (w *world) as(user string, p istiod.Policy) *istiod.Mesh {
	w.t.Helper()
	cfg := rest.CopyConfig(w.cluster.Config())
	cfg.Impersonate.UserName = user
	c, err := istiod.New(cfg, istiod.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Mesh(p)
}

// patience is long on any machine.
const patience = 30 * time.Second

const agent = "system:serviceaccount:mooring-system:mooring"

func (w *world) kubectl(args ...string) {
	w.t.Helper()
	if out, err := w.cluster.Kubectl(w.t.Context(), args...); err != nil {
		w.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestPods asks istiods in Pods, through the API server and a kubelet.
func TestPods(t *testing.T) {
	w := newWorld(t)
	k := newKubelet(w)
	w.write(serviceOf("shop"))
	w.kubectl("create", "namespace", "mooring-system")
	w.kubectl("apply", "-f", filepath.Join("..", "..", "deploy", "rbac", "check.yaml"))
	t.Run("there is no Istio", func(t *testing.T) {
		if took := w.propagated(w.as("", istiod.Policy{Pause: patience}), w.write(rule("shop"))); took > patience/2 {
			t.Errorf("waited for nobody, %s long", took)
		}
	})
	t.Run("there is a webhook and no istiod", func(t *testing.T) { webhookOnly(t, w) })
	t.Run("istiod is not ready", func(t *testing.T) {
		k.pod("istiod-new", nil, nil, false)
		defer k.remove("istiod-new")
		err := w.as("", istiod.Policy{Timeout: time.Second}).Propagated(t.Context(), nil)
		if want := "no istiod is ready: istio-system/istiod-new"; err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
	one := pilot.Start(t, w.cluster, pilot.Options{})
	k.pod("istiod-one", one, nil, true)
	t.Run("nobody may look", func(t *testing.T) {
		pauses(t, w.as("nobody", istiod.Policy{Pause: 300 * time.Millisecond}), `cannot list resource "pods"`)
	})
	t.Run("the right to forward is missing", func(t *testing.T) {
		pauses(t, w.as(agent, istiod.Policy{Pause: 300 * time.Millisecond}), `"pods/portforward"`, "deploy/rbac/propagation.yaml")
	})
	w.kubectl("apply", "-f", filepath.Join("..", "..", "deploy", "rbac", "propagation.yaml"))
	c := pilot.Connect(t, one, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	t.Run("the rights that deploy gives suffice", func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		w.propagated(w.as(agent, istiod.Policy{}), w.write(rule("shop", "forwarded")))
		if !w.hasSubset(c, "shop", "forwarded") {
			t.Error("the proxy does not have the subset")
		}
		eventually(t, "the port-forward is closed", func() bool { now, _ := k.forwards(); return now == 0 })
		if _, most := k.forwards(); most != 1 {
			t.Errorf("%d port-forwards to one istiod", most)
		}
		// The library's own goroutine waits a second for somebody to ask how the connection ended.
		eventually(t, "no goroutine is left", func() bool {
			left := goleak.Find(before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
				goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
			if left != nil {
				t.Log(left)
			}
			return left == nil
		})
	})
	t.Run("only the plain port listens", func(t *testing.T) {
		k.closed("istiod-one", "15014")
		w.propagated(w.as("", istiod.Policy{}), w.write(rule("shop", "plain")))
		k.closed("istiod-one", "8080")
		pauses(t, w.as("", istiod.Policy{Pause: 300 * time.Millisecond}), "does not answer", "connection refused")
	})
	t.Run("by its address", func(t *testing.T) {
		// Nobody listens on 15014 and 8080 of this machine.
		pauses(t, w.as("", istiod.Policy{Ask: istiod.Service, Pause: 300 * time.Millisecond}), "does not answer", "refused")
	})
	k.remove("istiod-one")
	t.Run("one of two dies in the middle", func(t *testing.T) { dies(t, w, k) })
}

// pauses wants a call that does not ask, and says why.
func pauses(t *testing.T, m *istiod.Mesh, why ...string) {
	t.Helper()
	began := time.Now()
	if err := m.Propagated(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 300*time.Millisecond || took > patience {
		t.Errorf("the pause took %s", took)
	}
	for _, word := range why {
		if !strings.Contains(m.Unasked(), word) {
			t.Errorf("not asked because %q, want %q", m.Unasked(), word)
		}
	}
}

func webhookOnly(t *testing.T, w *world) {
	hook := w.write(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: injector-NS, labels: {istio.io/rev: default}}}`)
	defer func() { w.delete(hook, "v1") }()
	pauses(t, w.as("", istiod.Policy{Pause: 300 * time.Millisecond}), "MutatingWebhookConfiguration/injector-"+w.namespace)
}

// dies has two istiods, and a proxy whose istiod dies while it hangs. It comes back to the other one, and is waited for.
func dies(t *testing.T, w *world, k *kubelet) {
	one := pilot.Start(t, w.cluster, pilot.Options{Name: "istiod-a"})
	two := pilot.Start(t, w.cluster, pilot.Options{Name: "istiod-b"})
	k.pod("istiod-a", one, map[string]string{"istio.io/rev": "default"}, true)
	k.pod("istiod-b", two, map[string]string{"istio.io/rev": "canary"}, true)
	other := pilot.Connect(t, two, pilot.Proxy{Namespace: w.namespace, Name: "other"}, pilot.Behaviour{})
	hung := pilot.Proxy{Namespace: w.namespace, Name: "moves"}
	was := pilot.Dial(t, one, hung, pilot.Behaviour{Answer: func(pilot.Response) error { return pilot.ErrSilent }})
	eventually(t, "the proxy is connected", func() bool { return connected(t, one) == 1 })
	written := []apply.Written{w.write(rule("shop", "moved"))}

	// Both are asked: the one whose proxy hangs is waited for.
	err := w.as("", istiod.Policy{Timeout: 2 * time.Second}).Propagated(t.Context(), written)
	if err == nil || !strings.Contains(err.Error(), "proxy moves."+w.namespace) {
		t.Errorf("the error is %v", err)
	}

	ended, asked := make(chan error, 1), k.questionsTo("istiod-a")
	m := w.as("", istiod.Policy{Pause: 20 * time.Second})
	go func() { ended <- m.Propagated(t.Context(), written) }()
	// In the middle: the second question comes after the answer to the first.
	eventually(t, "istiod has told of its proxy", func() bool { return k.questionsTo("istiod-a") >= asked+2 })
	was.Close()
	one.Kill()
	k.remove("istiod-a")
	select {
	case err := <-ended:
		t.Fatalf("a proxy that has nobody was not waited for: %v", err)
	case <-time.After(3 * time.Second):
	}
	now := pilot.Connect(t, two, hung, pilot.Behaviour{})
	if err := <-ended; err != nil || m.Unasked() != "" {
		t.Fatalf("%v, not asked because %q", err, m.Unasked())
	}
	for _, c := range []*pilot.Client{now, other} {
		if !w.hasSubset(c, "shop", "moved") {
			t.Errorf("%s does not have the subset", c.Proxy())
		}
	}
}
