package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// TestDeployedRightsSuffice runs the agent as the ServiceAccount that deploy makes, with no more rights than deploy gives it: leases, Moorings and
// their status, Events, Alarms, Secrets with credentials and addresses, and the objects of the mesh.
func TestDeployedRightsSuffice(t *testing.T) {
	w := quiet(t)
	root, err := world.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := w.Cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", root+"/deploy"); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		// The CRDs stay: the other tests of this world use them. The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		for _, args := range [][]string{
			{"delete", "namespace", "mooring-system", "--wait=false"},
			{"delete", "validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/name=mooring"},
		} {
			if out, err := w.Cluster.Kubectl(ctx, args...); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	agent := startAgent(t, w, world.AgentOptions{Name: "least", Args: []string{
		"--as", "system:serviceaccount:mooring-system:mooring",
		"--leader-elect", "--leader-election-namespace", "mooring-system",
	}})

	s := newSite(t, w, all(some("a=1 b=1"), files{"svc.yaml": service("web"), "vs.yaml": virtualService("web")}))
	web := newHook(t)
	s.mustShell("kubectl create secret generic web -n NS --from-literal=urls=generic+"+web.URL+"?template=json", "created")
	s.alarm("told", "events: [failed], shoutrrr: {secretRef: {name: web}}")
	u := s.mooring("prod", nil)
	u.inForce(s.head())
	s.want("a=1 b=1")
	s.sent("told", 0, 0)
	u.event(v1alpha1.ReasonApplied, "4 created")
	if m := u.sync(); m.Status.NotCheckedCount != 0 {
		t.Errorf("with the rights that deploy gives, this was not checked: %+v", m.Status.NotChecked)
	}

	u.inForceAfterSync(s.commit(files{"b.yaml": "", "a.yaml": configMap("a", "2")}))
	s.want("a=2")
	s.tamper("a", "by-hand")
	u.sync()
	s.want("a=2")

	// Without the right to list Secrets, that question of the check is not answered, and the rest goes on.
	if out, err := w.Cluster.Kubectl(t.Context(), "delete", "clusterrolebinding", "mooring-secrets"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "Secrets may not be listed", func() error {
		if out, err := w.Cluster.Kubectl(t.Context(), "auth", "can-i", "list", "secrets", "-A", "--as", "system:serviceaccount:mooring-system:mooring"); err == nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	u.inForceAfterSync(s.commit(files{"gateway.yaml": `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: shop, namespace: NS}
spec:
  selector: {istio: ingressgateway}
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [shop.example.com]
    tls: {mode: SIMPLE, credentialName: shop-tls}
`}))
	m := u.sync()
	if m.Status.NotCheckedCount == 0 || !strings.Contains(fmt.Sprint(m.Status.NotChecked), "secrets is forbidden") {
		t.Errorf("not checked are %+v", m.Status.NotChecked)
	}

	// An object of a kind that it has no right to: refused by name, and nothing else suffers.
	u.edit(func(m *mooring) { m.Spec.Path = "roles" })
	s.commit(files{"roles/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: more, namespace: NS}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`})
	m = u.sync()
	ready(t, m, "False", v1alpha1.ReasonApplyFailed, "roles", "forbidden")
	s.want("a=2")

	// The Alarm's Secret is read and its status written with what is left.
	s.sent("told", 1, 1)
	s.mustShell("mooring get alarms -n NS", "told", "Listening")
	if titles, texts := web.got(); len(titles) != 1 || !strings.Contains(titles[0], "prod: failed (ApplyFailed)") || !strings.Contains(texts[0], "forbidden") {
		t.Errorf("the webhook got %q\n%s", titles, strings.Join(texts, "\n"))
	}

	u.delete()
	s.sent("told", 1, 0)
	if len(s.list(virtualServices)) != 0 || len(s.list(services)) != 0 {
		t.Errorf("the deleted Mooring left objects: %v %v", s.list(virtualServices), s.list(services))
	}
	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
}

// inForceAfterSync asks for a pass and wants this commit to be in force then.
func (u *unit) inForceAfterSync(commit string) {
	u.t.Helper()
	u.sync()
	u.inForce(commit)
}
