package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// TestGitHubAppThroughAProxy has an agent that gets in as a GitHub App, through a proxy. Its tokens are revoked, the
// App's key is exchanged, and the proxy's password is wrong for a while: each is mended without a restart.
func TestGitHubAppThroughAProxy(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	first, second := appKey(t), appKey(t)
	app := &gitserver.GitHubApp{ID: "5", Installation: "7", Owner: "mesh", Key: &first.PublicKey}
	server := gitserver.HTTP(t, gitserver.HTTPOptions{Root: w.Git.Root, TLS: true, App: app})
	proxy := gitserver.Proxy(t, gitserver.ProxyOptions{Username: "ship", Password: "rope"})
	b := &bad{unit: &unit{site: s}}
	access := b.newSecret(map[string]string{
		"githubAppID": "5", "githubAppInstallationOwner": "mesh", "githubAppPrivateKey": appPEM(first),
		"githubAppBaseURL": "https://" + server.Addr() + "/api/v3", "ca.crt": string(server.CA()),
	})
	way := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "proxy"}, StringData: map[string]string{
		"address": proxy.Address(), "username": "ship", "password": "rope",
	}}
	b.put(access)
	b.put(way)
	u := s.mooring("prod", func(m *mooring) {
		m.Spec.Source.URL = server.RepoURL(s.ns + ".git")
		m.Spec.Source.SecretRef = &v1alpha1.LocalReference{Name: access.Name}
		m.Spec.Source.ProxySecretRef = &v1alpha1.LocalReference{Name: way.Name}
	})
	u.inForce(s.head())
	s.want("a=1")

	app.Revoke()
	u.inForceAfterSync(s.commit(some("a=2")))

	app.Set(func(a *gitserver.GitHubApp) { a.Key = &second.PublicKey })
	app.Revoke()
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, "401", "githubAppPrivateKey")
	b.put(with(access, "githubAppPrivateKey", appPEM(second)))
	u.inForceAfterSync(s.commit(some("a=3")))

	b.put(with(way, "password", "wrong"))
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, "407", "proxySecretRef")
	b.put(way)
	u.inForceAfterSync(s.commit(some("a=4")))
	s.want("a=4")
	if len(proxy.Targets()) == 0 || proxy.Saw("ghs_") {
		t.Errorf("the proxy saw a token, or nothing at all: %q", proxy.Targets())
	}
}

func appKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func appPEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
