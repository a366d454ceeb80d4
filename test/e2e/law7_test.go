package e2e_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

// broken is a file that does not render.
const broken = "apiVersion: v1\nkind: ConfigMap\n  metadata: {name: a}\n"

// TestLaw7LastGoodCommitStaysInForce edits live objects while the newest commit cannot be had, for every reason that there is.
func TestLaw7LastGoodCommitStaysInForce(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1 b=1 c=1 d=1 e=1"))
	// A server of its own, that can go away.
	server := gitserver.HTTP(t, gitserver.HTTPOptions{Root: w.Git.Root})
	u := s.mooring("prod", func(m *mooring) {
		m.Spec.Source.URL = server.RepoURL(s.ns + ".git")
		m.Spec.Interval.Duration = time.Second
	})
	good := s.head()
	u.inForce(good)

	refused := func(name string, because func(), reason string, mend func(), parts ...string) {
		t.Run(name, func(t *testing.T) {
			because()
			u.until("the newest commit is refused", world.HasReason(reason))
			m := u.sync()
			ready(t, m, metav1.ConditionFalse, reason, append(parts, good+" stays in force")...)
			s.tamper("a", "by-hand")
			s.becomes("a=1 b=1 c=1 d=1 e=1")

			// The same after a restart, when all that is known is in the cluster and in Git.
			if err := agent.Stop(); err != nil {
				t.Error(err)
			}
			s.tamper("b", "by-hand")
			agent = startAgent(t, w, world.AgentOptions{})
			s.becomes("a=1 b=1 c=1 d=1 e=1")
			s.tamper("c", "by-hand")
			s.becomes("a=1 b=1 c=1 d=1 e=1")
			ready(t, u.sync(), metav1.ConditionFalse, reason, append(parts, good+" stays in force")...)

			mend()
			good = s.head()
			u.inForce(good)
			s.want("a=1 b=1 c=1 d=1 e=1")
		})
	}
	whole := some("a=1 b=1 c=1 d=1 e=1")
	mend := func() { s.commit(whole) }

	refused("a file that does not parse", func() { s.commit(files{"a.yaml": broken}) }, v1alpha1.ReasonRenderFailed, mend, "a.yaml")
	refused("a finding of the check", func() { s.commit(files{"route.yaml": wrongRoute}) }, v1alpha1.ReasonCheckFailed,
		func() { s.commit(files{"route.yaml": ""}) }, "route.yaml", "VirtualService/"+s.ns+"/wrong")
	refused("a guarded prune", func() { s.commit(files{"a.yaml": "", "b.yaml": "", "c.yaml": ""}) }, v1alpha1.ReasonPruneGuarded, mend)
	refused("no branch any more", func() { s.repo.Delete("refs/heads/main") }, v1alpha1.ReasonFetchFailed,
		func() { s.repo.SetBranch("main", good) }, "main")
	refused("no Git server", func() { mustClose(t, server) }, v1alpha1.ReasonFetchFailed,
		func() { gitserver.HTTP(t, gitserver.HTTPOptions{Root: w.Git.Root, Addr: server.Addr()}) }, server.Addr())
}

// TestLaw7HoldsOnAnotherMachine starts the agent without what an earlier one had fetched: a pod that was moved.
func TestLaw7HoldsOnAnotherMachine(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1 b=1"))
	u := s.mooring("prod", every(time.Second))
	good := s.head()
	u.inForce(good)
	s.commit(files{"a.yaml": broken})
	s.commit(files{"b.yaml": broken}) // the good one is not even the parent of the newest
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, good+" stays in force")

	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
	s.tamper("a", "by-hand")
	startAgent(t, w, world.AgentOptions{EmptyStore: true})
	s.becomes("a=1 b=1")
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, good+" stays in force")
}

// wrongRoute is a VirtualService that Istio's own validation refuses.
const wrongRoute = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: wrong, namespace: NS}
spec:
  hosts: [shop]
  http:
  - route:
    - destination: {host: shop}
      weight: -10
`

func mustClose(t *testing.T, s *gitserver.Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
