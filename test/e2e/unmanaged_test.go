package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// What somebody made by hand one night and forgot.
const (
	hotfix = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hotfix, namespace: NS}
spec:
  hosts: [web.NS.svc.cluster.local]
  http: [{fault: {abort: {httpStatus: 503, percentage: {value: 100}}}, route: [{destination: {host: web.NS.svc.cluster.local}}]}]
`
	forgotten = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: forgotten, namespace: NS}
spec:
  workloadSelector: {labels: {app: web}}
  configPatches:
  - {applyTo: NETWORK_FILTER, match: {context: SIDECAR_INBOUND}, patch: {operation: REMOVE}}
`
)

// stray makes an object by hand.
func (s *site) stray(text string) {
	s.t.Helper()
	s.mustShell("kubectl create -f - <<'END'"+text+"END", "created")
}

// strays are the objects in status.unmanaged.
func strays(m *mooring) []string {
	var names []string
	for _, e := range m.Status.Unmanaged {
		names = append(names, e.Object)
	}
	return names
}

// beside asks for passes until status.unmanaged is so: a pass that is asked for looks anew, if the last look is not a moment old.
func (u *unit) beside(want ...string) *mooring {
	u.t.Helper()
	var m *mooring
	eventually(u.t, fmt.Sprintf("status.unmanaged is %q", want), func() error {
		if m = u.sync(); !slices.Equal(strays(m), want) || int(m.Status.UnmanagedCount) != len(want) {
			return fmt.Errorf("it is %q, %d in all", strays(m), m.Status.UnmanagedCount)
		}
		return nil
	})
	return m
}

// TestUnmanagedIsToldUntilItIsGone makes a second VirtualService for a host and an EnvoyFilter beside a Mooring that is in force, by kubectl. Both are
// told of everywhere, and nowhere any more when they are deleted.
func TestUnmanagedIsToldUntilItIsGone(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"svc.yaml": service("web"), "vs.yaml": virtualService("web"), "web.yaml": deployment("web", "example.com/main:1")})
	web := newHook(t)
	s.mustShell("kubectl create secret generic web -n NS --from-literal=urls=generic+"+web.URL+"?template=json", "created")
	s.alarm("asked", "events: [unmanaged, recovered], shoutrrr: {secretRef: {name: web}}")
	s.alarm("others", "shoutrrr: {secretRef: {name: web}}") // the default events are without it
	u := s.mooring("prod", nil)
	if m := u.inForce(s.head()); m.Status.UnmanagedCount != 0 {
		t.Fatalf("before anything was made: %v", strays(m))
	}
	metric := func(want float64) {
		t.Helper()
		if got := scrape(t, w.agent).Get("mooring_unmanaged_objects", u.series()...); got != want {
			t.Errorf("mooring_unmanaged_objects is %v, want %v", got, want)
		}
	}
	metric(0)
	filter, route := "EnvoyFilter/"+s.ns+"/forgotten", "VirtualService/"+s.ns+"/hotfix"
	host := "web." + s.ns + ".svc.cluster.local"
	second := "is a second VirtualService for the host of VirtualService/" + s.ns + "/web"

	s.stray(hotfix)
	s.stray(forgotten)
	s.mustShell("mooring get unmanaged prod -n NS", filter, route, host, "kubectl-create", second)
	before := s.versions()
	m := u.beside(filter, route)
	for _, e := range m.Status.Unmanaged {
		if !slices.Equal(e.Managers, []string{"kubectl-create"}) || e.Created == nil || e.BearsOn == "" {
			t.Errorf("status.unmanaged has %+v", e)
		}
	}
	if e := m.Status.Unmanaged[1]; e.BearsOn != host || !strings.HasPrefix(e.Why, second) {
		t.Errorf("status.unmanaged has %+v", e)
	}
	ready(t, m, "True", v1alpha1.ReasonApplied)
	metric(2)
	s.mustShell("mooring get prod -n NS", "Unmanaged", filter, route, "kubectl-create", second)
	s.sent("asked", 1, 1)
	s.untouched(before)

	s.mustShell("kubectl -n NS delete virtualservice hotfix", "deleted")
	u.beside(filter)
	metric(1)

	// Without a word from anybody the next commit finds it.
	s.mustShell("kubectl -n NS delete envoyfilter forgotten", "deleted")
	u.edit(every(2 * time.Second))
	u.inForce(s.commit(some("a=1")))
	s.sent("asked", 2, 0)
	m, err := w.Mooring(t.Context(), world.Key{Namespace: u.Namespace, Name: u.Name})
	if err != nil {
		t.Fatal(err)
	}
	if len(strays(m)) > 0 || m.Status.UnmanagedCount > 0 {
		t.Errorf("status.unmanaged is %v", strays(m))
	}
	metric(0)
	s.mustShell("mooring get unmanaged prod -n NS", "Nothing that no Mooring owns bears on")
	titles, texts := web.got()
	if len(titles) != 2 || lacks(titles[0], []string{"prod", "unmanaged"}) != "" || !strings.Contains(titles[1], "prod: recovered (unmanaged") || lacks(texts[0], []string{filter, route, "kubectl-create"}) != "" {
		t.Errorf("the webhook got %q\n%s", titles, strings.Join(texts, "\n"))
	}
	s.sent("others", 0, 0)
}
