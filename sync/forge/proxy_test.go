package forge_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// The API is reached through a proxy of either sort as it is without, and the proxy sees nothing of it; one that does not let us through is told of as such.
func TestProxy(t *testing.T) {
	const password = "s3cret-of-the-proxy"
	for _, socks := range []bool{false, true} {
		p := gitserver.Proxy(t, gitserver.ProxyOptions{SOCKS: socks, Username: "ship", Password: password})
		refuses := gitserver.Proxy(t, gitserver.ProxyOptions{SOCKS: socks, Refuse: true})
		for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab} {
			i := imitate(t, provider)
			i.push(commitOf(1))
			if pr, err := i.through(p.Address(), url.UserPassword("ship", password)).Propose(t.Context(), proposal(commitOf(1))); err != nil || !pr.Opened {
				t.Fatalf("%s, SOCKS %v: %+v, %v", provider, socks, pr, err)
			}
			targets := p.Targets()
			if len(targets) == 0 || targets[len(targets)-1] != i.server.Listener.Addr().String() {
				t.Errorf("%s, SOCKS %v: tunnels to %v, want one to the forge", provider, socks, targets)
			}
			for name, c := range map[string]struct {
				address, password, says, hint string
			}{
				"wrong password": {p.Address(), "wr0ng", "does not accept the credentials", "username and password in the Secret of spec.source.proxySecretRef"},
				"refuses":        {refuses.Address(), password, "the proxy", "spec.source.proxySecretRef"},
				"away":           {strings.Split(p.Address(), "://")[0] + "://127.0.0.1:1", password, "no way through the proxy", "spec.source.proxySecretRef"},
			} {
				asked := i.asked
				e := wrong(t, i.through(c.address, url.UserPassword("ship", c.password)), proposal(commitOf(1)), forge.KindProxy, c.says)
				if text := e.Error() + e.Hint; !strings.Contains(e.Hint, c.hint) || strings.Contains(text, c.password) || strings.Contains(text, token) {
					t.Errorf("%s, SOCKS %v, %s: %v (hint %q)", provider, socks, name, e, e.Hint)
				}
				if i.asked != asked {
					t.Errorf("%s, SOCKS %v, %s: the forge was asked past the proxy", provider, socks, name)
				}
			}
		}
		if p.Saw(token) || p.Saw("Promote") {
			t.Error("the proxy saw what goes to the forge")
		}
	}
}

// through is a Forge that reaches the imitation through a proxy.
func (i *imitation) through(address string, user *url.Userinfo) *forge.Forge {
	i.t.Helper()
	password, _ := user.Password()
	proxy, err := repos.ProxyFromSecret(map[string][]byte{"address": []byte(address), "username": []byte(user.Username()), "password": []byte(password)})
	if err != nil {
		i.t.Fatal(err)
	}
	return i.forgeWith(forge.Options{Proxy: proxy})
}
