package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/alertmanager"
	"github.com/mooring-dev/mooring/test/world"
)

// noConfigMaps denies every ConfigMap of the test: one cause.
const noConfigMaps = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NS}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}
  validations:
  - {expression: "!object.metadata.name.startsWith('storm')", message: "no storms here"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NS}
spec: {policyName: NS, validationActions: [Deny]}
`

// hook notes what a webhook gets.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	titles []string
	texts  []string
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var message struct{ Title, Message string }
		if err := json.Unmarshal(body, &message); err != nil {
			message.Title = err.Error()
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.titles, h.texts = append(h.titles, message.Title), append(h.texts, message.Message)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) got() (titles, texts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.titles...), append([]string{}, h.texts...)
}

// alarm makes one that gathers for two seconds.
func (s *site) alarm(name, receiver string) {
	s.t.Helper()
	s.apply("kubectl", fmt.Sprintf("apiVersion: mooring.dev/v1alpha1\nkind: Alarm\nmetadata: {name: %s, namespace: %s}\nspec: {groupWait: 2s, %s}\n", name, s.ns, receiver))
}

// sent waits until an Alarm has sent so many messages and so many faults are open.
func (s *site) sent(name string, messages int64, open int32) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("Alarm %s has sent %d messages", name, messages), func() error {
		a := &v1alpha1.Alarm{}
		if err := s.w.Client().Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, a); err != nil {
			return err
		}
		if a.Status.Sent != messages || a.Status.OpenCount != open {
			return fmt.Errorf("status is %+v", a.Status)
		}
		return nil
	})
}

// TestStormIsOneAlarm breaks 200 objects by one cause: one alarm and one recovery, at an Alertmanager and at a webhook, however many passes find
// the fault. A third receiver never answers, and nothing waits for it.
func TestStormIsOneAlarm(t *testing.T) {
	w := shared(t)
	content := files{}
	for i := range 200 {
		content[fmt.Sprintf("storm%03d.yaml", i)] = configMap(fmt.Sprintf("storm%03d", i), "1")
	}
	s := newSite(t, w.World, content)
	manager, web := alertmanager.Start(t), newHook(t)
	over := make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(stalled.Close)
	t.Cleanup(func() { close(over) })
	for name, url := range map[string]string{"web": "generic+" + web.URL + "?template=json", "stalled": "generic+" + stalled.URL} {
		s.mustShell(fmt.Sprintf("kubectl create secret generic %s -n NS --from-literal=urls=%s", name, url), "created")
		s.alarm(name, fmt.Sprintf("shoutrrr: {secretRef: {name: %s}}", name))
	}
	s.alarm("manager", fmt.Sprintf("alertmanager: {url: %q}", manager.URL))
	policy := strings.ReplaceAll(noConfigMaps, "NS", s.ns)
	for document := range strings.SplitSeq(policy, "---\n") {
		s.apply("kubectl", document)
	}
	remove := func() {
		_, _ = w.Cluster.Kubectl(context.WithoutCancel(t.Context()), "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", s.ns, "--ignore-not-found")
	}
	t.Cleanup(remove)
	eventually(t, "the policy denies", func() error {
		_, err := w.Cluster.Kubectl(t.Context(), "create", "configmap", "storm", "-n", s.ns, "--dry-run=server")
		if err == nil {
			return fmt.Errorf("it does not yet")
		}
		return nil
	})

	u := s.mooring("prod", nil)
	for range 3 {
		ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "no storms here", "more objects")
	}
	s.sent("manager", 1, 1)
	s.sent("web", 1, 1)
	s.mustShell("mooring get alarms -n NS", "manager", "Listening", manager.URL)
	for range 3 {
		u.sync()
	}

	remove()
	begun := time.Now()
	eventually(t, "all is in force", func() error {
		if c := world.Ready(u.sync()); c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s: %s", c.Reason, c.Message)
		}
		return nil
	})
	t.Logf("in force %s after the policy was removed, with a receiver that does not answer", time.Since(begun).Round(time.Millisecond))
	s.sent("manager", 2, 0)
	s.sent("web", 2, 0)
	titles, texts := web.got()
	if len(titles) != 2 || !strings.Contains(titles[0], "prod: failed (ApplyFailed)") || !strings.Contains(titles[1], "prod: recovered") || !strings.Contains(texts[0], "no storms here") {
		t.Errorf("the webhook got %q\n%s", titles, strings.Join(texts, "\n"))
	}
	eventually(t, "Alertmanager tells of one alarm and one recovery", func() error {
		var got []string
		for _, n := range manager.Told() {
			got = append(got, fmt.Sprintf("%s of %d", n.Status, len(n.Alerts)))
		}
		if all := strings.Join(got, ", "); all != "firing of 1, resolved of 1" {
			return fmt.Errorf("it told %s", all)
		}
		return nil
	})
}
