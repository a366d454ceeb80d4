package e2e_test

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/port"
	"github.com/mooring-dev/mooring/test/world"
)

// TestBadInput makes every fault that a user can make, on a Mooring that was well before. Each gets Ready=False with its reason
// and a hint that mends it, one Event however often it is tried, a metric, and a cluster that stays as it was. Then it
// is mended as the hint says, and all is well without a restart.
func TestBadInput(t *testing.T) {
	for _, c := range []badInput{
		{
			name: "missing Secret", reason: v1alpha1.ReasonFetchFailed, remote: overTLS,
			spoil: func(b *bad) { b.drop(b.secret) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"Secret NS/git-auth", "does not exist"}, hint: "kubectl -n NS create secret",
		},
		{
			name: "incomplete Secret", reason: v1alpha1.ReasonFetchFailed, remote: overSSH,
			spoil: func(b *bad) { b.put(without(b.secret, "known_hosts")) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"Secret NS/git-auth", "known_hosts"}, hint: "ssh-keyscan",
		},
		{
			name: "wrong password", reason: v1alpha1.ReasonFetchFailed, remote: overTLS,
			spoil: func(b *bad) { b.put(with(b.secret, "password", "guessed-wrongly")) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"https://127.0.0.1", "401"}, hint: "Secret", never: "guessed-wrongly",
		},
		{
			name: "unknown authority", reason: v1alpha1.ReasonFetchFailed, remote: overTLS,
			spoil: func(b *bad) { b.put(without(b.secret, "ca.crt")) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"certificate"}, hint: "ca.crt",
		},
		{
			name: "changed ssh host key", reason: v1alpha1.ReasonFetchFailed, remote: overSSH,
			spoil: func(b *bad) { b.put(with(b.secret, "known_hosts", b.wrongHost)) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"host key", "SHA256:"}, hint: "known_hosts",
		},
		{
			name: "refused ssh key", reason: v1alpha1.ReasonFetchFailed, remote: overSSH,
			spoil: func(b *bad) { b.put(with(b.secret, "identity", b.wrongKey)) }, mend: func(b *bad) { b.put(b.secret) },
			says: []string{"ssh://"}, hint: "identity", never: "PRIVATE KEY",
		},
		{
			name: "missing repository", reason: v1alpha1.ReasonFetchFailed,
			spoil: func(b *bad) { b.edit(func(m *mooring) { m.Spec.Source.URL = b.w.Git.RepoURL("nosuch.git") }) },
			mend:  func(b *bad) { b.edit(func(m *mooring) { m.Spec.Source.URL = b.repo.URL }) },
			says:  []string{"nosuch.git"}, hint: "heck the url",
		},
		{
			name: "missing branch", reason: v1alpha1.ReasonFetchFailed,
			spoil: func(b *bad) { b.repo.SetBranch("trunk", "main"); b.repo.Delete("refs/heads/main") },
			mend:  func(b *bad) { b.edit(func(m *mooring) { m.Spec.Source.Ref.Branch = "trunk" }) },
			says:  []string{"main", "does not exist", "trunk"}, hint: "correct the name",
		},
		{
			name: "Git server away", reason: v1alpha1.ReasonFetchFailed, remote: overHTTP,
			spoil: func(b *bad) { mustClose(b.t, b.server) },
			mend:  func(b *bad) { gitserver.HTTP(b.t, gitserver.HTTPOptions{Root: b.server.Root, Addr: b.server.Addr()}) },
			says:  []string{"http://127.0.0.1", "connection refused"}, hint: "reach",
		},
		{
			name: "Git server whose connections are reset", reason: v1alpha1.ReasonFetchFailed, remote: overHTTP,
			spoil: func(b *bad) { mustClose(b.t, b.server); b.cut = resetAll(b.t, b.server.Addr()) },
			mend: func(b *bad) {
				b.must(b.cut.Close())
				gitserver.HTTP(b.t, gitserver.HTTPOptions{Root: b.server.Root, Addr: b.server.Addr()})
			},
			says: []string{"http://127.0.0.1", "connection reset by peer"}, hint: "reach",
		},
		{
			name: "Git server in trouble", reason: v1alpha1.ReasonFetchFailed, remote: overHTTP,
			spoil: func(b *bad) { b.must(b.server.Inject(gitserver.Fault{Status: 503, Body: "back soon"})) },
			mend:  func(b *bad) { b.must(b.server.Heal()) },
			says:  []string{"http://127.0.0.1", "503"},
		},
		{
			name: "missing path", reason: v1alpha1.ReasonRenderFailed,
			spoil: func(b *bad) {
				b.commit(files{"prod/a.yaml": "", "prod/b.yaml": "", "prodd/a.yaml": configMap("a", "2")})
			},
			mend: func(b *bad) { b.edit(at("prodd")); b.confirm() },
			says: []string{"prod"}, hint: "spelling",
		},
		{
			name: "parse error", reason: v1alpha1.ReasonRenderFailed,
			spoil: func(b *bad) { b.commit(files{"prod/a.yaml": broken}) },
			mend:  func(b *bad) { b.commit(files{"prod/a.yaml": configMap("a", "2")}) },
			says:  []string{"prod/a.yaml:3"}, hint: "push",
		},
		{
			name: "AppConfiguration with a field that is not there", reason: v1alpha1.ReasonRenderFailed,
			spoil: func(b *bad) {
				b.commit(files{"prod/a.yaml": configMap("a", "2"), "prod/app.yaml": application(1, 2, "  gatway: {}\n")})
			},
			mend: func(b *bad) { b.commit(files{"prod/app.yaml": ""}) },
			says: []string{"prod/app.yaml:12", "AppConfiguration/NS/web", "spec.gatway"}, hint: "spelling",
		},
		{
			name: "finding of the check", reason: v1alpha1.ReasonCheckFailed,
			spoil: func(b *bad) { b.commit(files{"prod/a.yaml": configMap("a", "2"), "prod/route.yaml": wrongRoute}) },
			mend:  func(b *bad) { b.commit(files{"prod/route.yaml": ""}) },
			says:  []string{"prod/route.yaml:4", "VirtualService/NS/wrong", "weight"}, hint: "push",
		},
		{
			name: "no objects", reason: v1alpha1.ReasonPruneGuarded,
			spoil: func(b *bad) {
				b.commit(files{"prod/a.yaml": "", "prod/b.yaml": "", "prod/kustomization.yaml": "resources: []\n"})
			},
			mend: func(b *bad) { b.commit(all(under("prod", some("a=1 b=1")), files{"prod/kustomization.yaml": ""})) },
			says: []string{"2 objects"}, hint: "delete the Mooring",
		},
	} {
		t.Run(c.name, c.run)
	}
}

// badInput is one fault.
type badInput struct {
	name   string
	remote func(*bad) // where the repository is; on the world's own server when nil
	spoil  func(*bad)
	reason string
	says   []string // what the message names
	hint   string   // what the message tells to do
	never  string   // what is said nowhere
	mend   func(*bad)
}

// bad is a site with one Mooring whose input goes bad.
type bad struct {
	*unit
	crowd     *crowd
	server    *gitserver.Server
	cut       net.Listener // in its place
	secret    *corev1.Secret
	wrongHost string
	wrongKey  string
}

func (c badInput) run(t *testing.T) {
	w := shared(t)
	b := &bad{crowd: w, unit: &unit{site: newSite(t, w.World, under("prod", some("a=1 b=1")))}}
	if c.remote != nil {
		c.remote(b)
	}
	if b.secret != nil {
		b.put(b.secret)
	}
	b.unit = b.mooring("prod", func(m *mooring) {
		m.Spec.Path = "prod"
		if b.server != nil {
			m.Spec.Source.URL = b.server.RepoURL(b.ns + ".git")
		}
		if b.secret != nil {
			m.Spec.Source.SecretRef = &v1alpha1.LocalReference{Name: b.secret.Name}
		}
	})
	b.inForce(b.head())
	b.want("a=1 b=1")
	before := b.versions()

	c.spoil(b)
	var message string
	for range 3 { // it is told once, however often it is tried
		m := b.sync()
		says := append([]string{c.hint}, c.says...)
		for i := range says {
			says[i] = strings.ReplaceAll(says[i], "NS", b.ns)
		}
		ready(t, m, metav1.ConditionFalse, c.reason, says...)
		if got := world.Ready(m).Message; message == "" {
			message = got
		} else if got != message {
			t.Errorf("the message flaps:\n%s\n%s", message, got)
		}
	}
	t.Log(message)
	b.untouched(before)
	if e := b.event(c.reason); e.Type != corev1.EventTypeWarning || e.Note != message {
		t.Errorf("the Event is %+v, want a Warning with the message", e)
	}
	metrics := scrape(t, w.agent)
	if got := metrics.Series("mooring_ready", b.series()...); len(got) != 1 || metrics[got[0]] != 0 || !strings.Contains(got[0], c.reason) {
		t.Errorf("mooring_ready is %v, want one series of reason %s with value 0", got, c.reason)
	}
	if got := metrics.Get("mooring_passes_total", b.series(`reason="`+c.reason+`"`)...); got < 3 {
		t.Errorf("mooring_passes_total of reason %s is %v, want 3 or more", c.reason, got)
	}
	b.never(c.never)

	c.mend(b)
	ready(t, b.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	b.event("Recovered")
	b.never(c.never)
}

// never fails the test when a secret is in the Mooring, an Event, a metric or the log.
func (b *bad) never(secret string) {
	b.t.Helper()
	if secret == "" {
		return
	}
	metrics, err := b.crowd.agent.Metrics(b.t.Context())
	b.must(err)
	told := b.w.Describe(b.t.Context(), b.Key) + b.crowd.agent.LogTail(100000)
	for series := range metrics {
		told += series
	}
	if strings.Contains(told, secret) {
		b.t.Errorf("%q is told where everybody can read it", secret)
	}
}

// confirm lets a plan of the newest commit through that deletes more than it may.
func (b *bad) confirm() {
	b.edit(func(m *mooring) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ConfirmAnnotation, b.head())
	})
}

func (b *bad) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// overHTTP serves the repository on a server of its own.
func overHTTP(b *bad) {
	b.server = gitserver.HTTP(b.t, gitserver.HTTPOptions{Root: b.w.Git.Root})
}

// resetAll resets each connection to an address when it has been asked something.
func resetAll(t *testing.T, addr string) net.Listener {
	t.Helper()
	listener, err := port.Listen(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	return listener
}

// overTLS serves it under a private authority to those who know the password.
func overTLS(b *bad) {
	b.server = gitserver.HTTP(b.t, gitserver.HTTPOptions{Root: b.w.Git.Root, TLS: true, Username: "agent", Password: "open-sesame"})
	b.secret = b.newSecret(map[string]string{"username": "agent", "password": "open-sesame", "ca.crt": string(b.server.CA())})
}

// overSSH serves it with a real sshd to the holder of a key.
func overSSH(b *bad) {
	b.server = gitserver.SSH(b.t, gitserver.SSHOptions{Root: b.w.Git.Root, HostKeys: []string{"ed25519"}})
	b.secret = b.newSecret(map[string]string{"identity": string(b.server.Identity()), "known_hosts": string(b.server.KnownHosts())})
	stranger, err := gitserver.NewIdentity()
	b.must(err)
	key, err := ssh.ParsePrivateKey(stranger)
	b.must(err)
	b.wrongKey, b.wrongHost = string(stranger), string(b.server.KnownHosts(key.PublicKey()))
}

func (b *bad) newSecret(data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.ns, Name: "git-auth"}, StringData: data}
}

// put writes a Secret, whatever is there.
func (b *bad) put(s *corev1.Secret) {
	b.t.Helper()
	b.drop(s)
	b.must(b.w.Client().Create(b.t.Context(), s.DeepCopy()))
}

func (b *bad) drop(s *corev1.Secret) {
	b.t.Helper()
	b.must(client.IgnoreNotFound(b.w.Client().Delete(b.t.Context(), s.DeepCopy())))
}

func with(s *corev1.Secret, key, value string) *corev1.Secret {
	s = s.DeepCopy()
	s.StringData[key] = value
	return s
}

func without(s *corev1.Secret, key string) *corev1.Secret {
	s = s.DeepCopy()
	delete(s.StringData, key)
	return s
}

func TestAPIServerRefusesAMooringThatCannotBeRight(t *testing.T) {
	w := shared(t)
	ns := w.Cluster.Namespace(t)
	m := &mooring{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "two-refs"}}
	m.Spec.Source = v1alpha1.Source{URL: w.Git.RepoURL("any.git"), Ref: v1alpha1.Ref{Branch: "main", Tag: "v1"}}
	m.Default()
	err := w.Client().Create(t.Context(), m)
	if err == nil || !strings.Contains(err.Error(), "exactly one of branch, tag") {
		t.Errorf("a Mooring with a branch and a tag: %v, want a refusal that says to set exactly one", err)
	}
}
