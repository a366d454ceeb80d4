package repos_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// resetting passes connections on to a server and resets each of them when that has answered some bytes; at once when there is no server.
func resetting(t *testing.T, server string, after int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	pass := func(in *net.TCPConn) {
		defer func() {
			_ = in.SetLinger(0)
			_ = in.Close()
		}()
		if server == "" {
			_, _ = in.Read(make([]byte, 1)) // a client that still writes may see a broken pipe instead
			return
		}
		out, err := net.Dial("tcp", server)
		if err != nil {
			return
		}
		defer func() { _ = out.Close() }()
		go func() { _, _ = io.Copy(out, in) }()
		_, _ = io.CopyN(in, out, after)
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(in.(*net.TCPConn))
		}
	}()
	return listener.Addr().String()
}

// A connection that is reset says the same at each try, though our port is another one.
func TestConnectionsThatAreReset(t *testing.T) {
	t.Parallel()
	http := gitserver.HTTP(t, gitserver.HTTPOptions{})
	ssh := gitserver.SSH(t, gitserver.SSHOptions{})
	large := map[string]string{"f": noise(t, 200_000)}
	byHTTP, bySSH := http.Repo(t, "shop.git", large), ssh.Repo(t, "shop.git", large)
	atHTTP := func(addr string) string { return strings.Replace(byHTTP.URL, http.Addr(), addr, 1) }
	known := func(addr string) repos.Auth {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		_, real, err := net.SplitHostPort(ssh.Addr())
		if err != nil {
			t.Fatal(err)
		}
		hosts := strings.ReplaceAll(string(ssh.KnownHosts()), ":"+real, ":"+port)
		return auth(t, map[string]string{"identity": string(ssh.Identity()), "known_hosts": hosts})
	}
	proxied := func(scheme, addr string) repos.Proxy {
		p, err := repos.ProxyFromSecret(secret(map[string]string{"address": scheme + "://" + addr}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		name   string
		server string
		after  int64
		remote func(addr string) repos.Remote
		kind   repos.Kind
	}{
		{"http", "", 0, func(addr string) repos.Remote { return repos.Remote{URL: "http://" + addr + "/x.git"} }, repos.KindUnavailable},
		{"tls", "", 0, func(addr string) repos.Remote { return repos.Remote{URL: "https://" + addr + "/x.git"} }, repos.KindUnavailable},
		{"http in the headers", http.Addr(), 30, func(addr string) repos.Remote { return repos.Remote{URL: atHTTP(addr)} }, repos.KindUnavailable},
		{"http in the refs", http.Addr(), 500, func(addr string) repos.Remote { return repos.Remote{URL: atHTTP(addr)} }, repos.KindUnavailable},
		{"http in the pack", http.Addr(), 100_000, func(addr string) repos.Remote { return repos.Remote{URL: atHTTP(addr)} }, repos.KindUnavailable},
		{"ssh", "", 0, func(addr string) repos.Remote {
			return repos.Remote{URL: "ssh://git@" + addr + "/x.git", Auth: known(addr)}
		}, repos.KindUnavailable},
		{"ssh in the handshake", ssh.Addr(), 200, func(addr string) repos.Remote {
			return repos.Remote{URL: strings.Replace(bySSH.URL, ssh.Addr(), addr, 1), Auth: known(addr)}
		}, repos.KindUnavailable},
		{"ssh while it lets us in", ssh.Addr(), 1500, func(addr string) repos.Remote {
			return repos.Remote{URL: strings.Replace(bySSH.URL, ssh.Addr(), addr, 1), Auth: known(addr)}
		}, repos.KindUnavailable},
		{"ssh in the pack", ssh.Addr(), 100_000, func(addr string) repos.Remote {
			return repos.Remote{URL: strings.Replace(bySSH.URL, ssh.Addr(), addr, 1), Auth: known(addr)}
		}, repos.KindUnavailable},
		{"http proxy for http", "", 0, func(addr string) repos.Remote {
			return repos.Remote{URL: "http://git.example.com/x.git", Proxy: proxied("http", addr)}
		}, repos.KindUnavailable},
		{"http proxy for ssh", "", 0, func(addr string) repos.Remote {
			return repos.Remote{URL: bySSH.URL, Auth: known(ssh.Addr()), Proxy: proxied("http", addr)}
		}, repos.KindProxy},
		{"socks proxy for http", "", 0, func(addr string) repos.Remote {
			return repos.Remote{URL: "http://git.example.com/x.git", Proxy: proxied("socks5", addr)}
		}, repos.KindProxy},
		{"socks proxy for ssh", "", 0, func(addr string) repos.Remote {
			return repos.Remote{URL: bySSH.URL, Auth: known(ssh.Addr()), Proxy: proxied("socks5", addr)}
		}, repos.KindProxy},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			remote := c.remote(resetting(t, c.server, c.after))
			store, _ := open(t, repos.Options{})
			said := map[string]int{}
			for range 5 {
				_, err := tryPull(t.Context(), store, remote, main)
				wantKind(t, err, c.kind)
				said[err.Error()]++
			}
			if len(said) != 1 {
				t.Errorf("said in five tries: %v", said)
			}
			for text := range said {
				if strings.Contains(text, "->127.0.0.1") && !strings.Contains(text, "socks connect") {
					t.Errorf("%q has our own address", text)
				}
			}
		})
	}
}

// What the libraries put into a text that differs from try to try is left out, and nothing else.
func TestErrorsAreSteady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ says, want string }{
		{"read tcp 127.0.0.1:53412->127.0.0.1:443: read: connection reset by peer", "read tcp 127.0.0.1:443: read: connection reset by peer"},
		{"write tcp4 10.0.0.7:1->10.0.0.8:22: write: broken pipe", "write tcp4 10.0.0.8:22: write: broken pipe"},
		{"dial tcp [fd00::1%eth0]:53412->[fd00::2]:443: i/o timeout", "dial tcp [fd00::2]:443: i/o timeout"},
		{
			"dial tcp: lookup git.example.com on 10.96.0.10:53: read udp 10.244.1.5:41234->10.96.0.10:53: i/o timeout",
			"dial tcp: lookup git.example.com on 10.96.0.10:53: read udp 10.96.0.10:53: i/o timeout",
		},
		{
			"socks connect tcp proxy:1080->git.example.com:22: read tcp 10.0.0.7:41234->10.0.0.9:1080: i/o timeout",
			"socks connect tcp proxy:1080->git.example.com:22: read tcp 10.0.0.9:1080: i/o timeout",
		},
		{
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-29T03:38:13Z is after 2026-01-01T00:00:00Z",
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: the current time is after 2026-01-01T00:00:00Z",
		},
		{
			"API rate limit exceeded for installation ID 7. If you reach out to GitHub Support for help, please include the request ID F7CA:1B2:3 and timestamp 2026-11-29 03:38:13 UTC.",
			"API rate limit exceeded for installation ID 7. If you reach out to GitHub Support for help, please include the request ID and timestamp.",
		},
		{"main -> refs/heads/main (fetch first)", "main -> refs/heads/main (fetch first)"},
	} {
		cause := errors.New(c.says)
		err := &repos.Error{Kind: repos.KindUnavailable, Op: "resolve", URL: "https://git.example.com/x.git", Err: cause}
		if got, want := err.Error(), "resolve https://git.example.com/x.git: "+c.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !errors.Is(err, cause) {
			t.Error("the cause is lost")
		}
	}
}
