package gitserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/test/port"
)

// HTTPOptions of a server. The zero value serves anonymous readers over plain HTTP on a free port.
type HTTPOptions struct {
	// Root is the folder whose bare repositories are served; StartHTTP needs it, HTTP makes one when it is empty.
	Root string
	// Addr to listen on; a free loopback port when empty.
	Addr string
	// Username and Password that basic authentication asks for; anonymous when both are empty.
	Username, Password string
	// BearerToken that the Authorization header has to carry.
	BearerToken string
	// TLS under a private authority; see Server.CA.
	TLS bool
	// ClientCert asks for a client certificate of the same authority; it implies TLS. See Server.ClientCert.
	ClientCert bool
	// AllowPush lets clients push.
	AllowPush bool
	// App checks the tokens of its installation in place of a password, and answers the API below /api/v3.
	App *GitHubApp
}

// StartHTTP serves opts.Root until Close is called or ctx ends.
func StartHTTP(ctx context.Context, opts HTTPOptions) (*Server, error) {
	bin, err := execPath()
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(opts.Root)
	if err != nil || opts.Root == "" {
		return nil, fmt.Errorf("serve git over http: no root folder given (%q)", opts.Root)
	}
	s := &Server{Root: root, scheme: "http"}
	listener, err := s.listen(ctx, opts)
	if err != nil {
		return nil, err
	}
	s.addr = listener.Addr().String()

	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	srv := &http.Server{
		Handler:           s.handler(opts, filepath.Join(bin, "git-http-backend")),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return serving },
		ErrorLog:          log.New(io.Discard, "", 0), // handshakes that a test means to fail
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	stopWatch := context.AfterFunc(ctx, func() { _ = s.Close() })
	s.stop = func() error {
		stopWatch()
		cancel() // ends the handlers that stall and the backends that run
		err := srv.Close()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}
	return s, nil
}

// listen opens the port, with TLS where the options want it.
func (s *Server) listen(ctx context.Context, opts HTTPOptions) (net.Listener, error) {
	addr := opts.Addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := port.Listen(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("serve git over http: %w", err)
	}
	if !opts.TLS && !opts.ClientCert {
		return listener, nil
	}
	s.scheme = "https"
	if s.tls, err = newAuthority(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	config, err := s.tls.serverConfig(opts.ClientCert)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return tls.NewListener(listener, config), nil
}

// handler checks the credentials, counts, injects faults and hands over to Git.
func (s *Server) handler(opts HTTPOptions, backend string) http.Handler {
	config := [][2]string{{"http.receivepack", fmt.Sprint(opts.AllowPush)}}
	git := &cgi.Handler{
		Path:   backend,
		Env:    append(gitEnv(config...), "GIT_PROJECT_ROOT="+s.Root, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if opts.App != nil && strings.HasPrefix(r.URL.Path, apiPrefix) {
			opts.App.serve(w, r)
			return
		}
		repo, op := splitRequest(r)
		switch op {
		case "info/refs":
			s.counts.add(repo, Counts{InfoRefs: 1})
		case "git-upload-pack":
			s.counts.add(repo, Counts{UploadPack: 1})
		}
		w, done := s.faults.apply(w, r, op)
		if done || !authorized(opts, w, r) {
			return
		}
		if _, err := os.Stat(filepath.Join(s.Root, filepath.FromSlash(repo))); err != nil {
			http.NotFound(w, r)
			return
		}
		git.ServeHTTP(w, r)
	})
}

// splitRequest takes "/shop.git/info/refs" apart into the repository and what is asked of it.
func splitRequest(r *http.Request) (repo, op string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	for _, op := range []string{"info/refs", "git-upload-pack", "git-receive-pack"} {
		if repo, ok := strings.CutSuffix(path, "/"+op); ok {
			return repo, op
		}
	}
	return path, ""
}

func authorized(opts HTTPOptions, w http.ResponseWriter, r *http.Request) bool {
	switch {
	case opts.App != nil:
		if opts.App.authorized(r) {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	case opts.BearerToken != "":
		if r.Header.Get("Authorization") == "Bearer "+opts.BearerToken {
			return true
		}
	case opts.Username != "" || opts.Password != "":
		if user, password, ok := r.BasicAuth(); ok && user == opts.Username && password == opts.Password {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
	default:
		return true
	}
	http.Error(w, "who are you?", http.StatusUnauthorized)
	return false
}
