package gitserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// ProxyOptions of a proxy. The zero value is an HTTP proxy that lets everybody through.
type ProxyOptions struct {
	// SOCKS speaks SOCKS5 (RFC 1928 and 1929) in place of HTTP's CONNECT.
	SOCKS bool
	// Username and Password that it asks for; none when both are empty.
	Username, Password string
	// Refuse every tunnel.
	Refuse bool
}

// ProxyServer passes bytes on and remembers them.
type ProxyServer struct {
	opts     ProxyOptions
	listener net.Listener
	conns    *connSet

	mu      sync.Mutex
	targets []string
	seen    bytes.Buffer
}

// Proxy serves until the test ends.
func Proxy(t testing.TB, opts ProxyOptions) *ProxyServer {
	t.Helper()
	listener, err := listenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	p := &ProxyServer{opts: opts, listener: listener, conns: newConnSet()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.conns.add(conn)
			serving.Go(func() {
				_ = p.serve(conn) // the client sees what went wrong
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.conns.close()
		serving.Wait()
	})
	return p
}

// Address as a Secret has it.
func (p *ProxyServer) Address() string {
	if p.opts.SOCKS {
		return "socks5://" + p.listener.Addr().String()
	}
	return "http://" + p.listener.Addr().String()
}

// Targets are the addresses that tunnels were made to.
func (p *ProxyServer) Targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets)
}

// Saw tells whether a text went through in the clear, in either direction.
func (p *ProxyServer) Saw(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.seen.Bytes(), []byte(text))
}

// Write remembers.
func (p *ProxyServer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.Write(b)
}

func (p *ProxyServer) serve(conn net.Conn) error {
	in := bufio.NewReader(io.TeeReader(conn, p))
	if p.opts.SOCKS {
		target, err := p.socks(in, conn)
		if err != nil {
			return err
		}
		return p.tunnel(in, conn, target, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
	}
	r, err := http.ReadRequest(in)
	if err != nil {
		return err
	}
	answer := func(status string) error {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status)
		return err
	}
	r.Header.Set("Authorization", r.Header.Get("Proxy-Authorization"))
	user, password, _ := r.BasicAuth()
	switch {
	case user != p.opts.Username || password != p.opts.Password:
		return answer("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"proxy\"")
	case p.opts.Refuse:
		return answer("403 Forbidden")
	case r.Method == http.MethodConnect:
		return p.tunnel(in, conn, r.Host, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	p.note(r.URL.Host)
	r.RequestURI = ""
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		r.Header.Del(name)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return answer("502 Bad Gateway")
	}
	defer func() { _ = res.Body.Close() }()
	res.Close = true
	return res.Write(conn)
}

// socks greets, asks for name and password where the options want them, and reads where to.
func (p *ProxyServer) socks(in *bufio.Reader, conn net.Conn) (target string, err error) {
	field := func() string { // a byte of length, and so many bytes
		n, _ := in.ReadByte()
		b := make([]byte, n)
		_, err = io.ReadFull(in, b)
		return string(b)
	}
	version, _ := in.ReadByte()
	methods := field()
	want := "\x00"
	if p.opts.Username != "" {
		want = "\x02"
	}
	if version != 5 || !bytes.Contains([]byte(methods), []byte(want)) {
		_, _ = io.WriteString(conn, "\x05\xff")
		return "", errors.New("no method in common")
	}
	if _, err := io.WriteString(conn, "\x05"+want); err != nil {
		return "", err
	}
	if want == "\x02" {
		_, _ = in.ReadByte()
		if user, password := field(), field(); user != p.opts.Username || password != p.opts.Password {
			_, _ = io.WriteString(conn, "\x01\x01")
			return "", errors.New("wrong password")
		}
		if _, err := io.WriteString(conn, "\x01\x00"); err != nil {
			return "", err
		}
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(in, head); err != nil {
		return "", err
	}
	host := ""
	switch head[3] {
	case 1, 4:
		b := make([]byte, map[byte]int{1: 4, 4: 16}[head[3]])
		_, err = io.ReadFull(in, b)
		host = net.IP(b).String()
	default:
		host = field()
	}
	port := make([]byte, 2)
	if err == nil {
		_, err = io.ReadFull(in, port)
	}
	if p.opts.Refuse && err == nil {
		_, err = io.WriteString(conn, "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00")
		return "", errors.Join(err, errors.New("refused"))
	}
	return net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port)))), err
}

func (p *ProxyServer) note(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = append(p.targets, target)
}

// tunnel says well and passes bytes both ways until one side ends.
func (p *ProxyServer) tunnel(in io.Reader, conn net.Conn, target, well string) error {
	p.note(target)
	out, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return err
	}
	p.conns.add(out)
	defer func() { _ = out.Close() }()
	if _, err := io.WriteString(conn, well); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, err = io.Copy(io.MultiWriter(conn, p), out)
	return err
}
