package gitserver

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// Fault is something that goes wrong on purpose, until Heal or for a number of requests.
type Fault struct {
	// On is the request that it happens on: "info/refs", "git-upload-pack", or any when empty. HTTP only: over SSH
	// a fault strikes a session as a whole.
	On string
	// Times is how many requests are hit; 0 means all until Heal. HTTP only.
	Times int
	// Status answers with this code instead of asking Git. HTTP only.
	Status int
	// RetryAfter is the value of the header that goes with Status.
	RetryAfter string
	// Body goes with Status.
	Body string
	// RedirectTo answers 302 to this base URL, with the path and query of the request. HTTP only.
	RedirectTo string
	// Stall lets StallAfter bytes of the answer through and then keeps silent until the client goes away.
	Stall      bool
	StallAfter int
	// Cut lets CutAfter bytes of the answer through and then closes the connection. HTTP only.
	Cut      bool
	CutAfter int
}

// Inject makes the server behave badly from the next request on; a later call replaces an earlier one.
func (s *Server) Inject(f Fault) error {
	if s.keys != nil {
		return s.keys.inject(f)
	}
	s.faults.set(&f)
	return nil
}

// Heal ends what Inject began. Requests that are already stalled stay so.
func (s *Server) Heal() error {
	if s.keys != nil {
		return s.keys.heal()
	}
	s.faults.set(nil)
	return nil
}

type faults struct {
	mu   sync.Mutex
	now  *Fault
	left int
}

func (f *faults) set(fault *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = fault
	if fault != nil {
		f.left = fault.Times
	}
}

// take gives the fault that strikes this request, if any.
func (f *faults) take(op string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil || (f.now.On != "" && f.now.On != op) {
		return nil
	}
	hit := f.now
	if hit.Times > 0 {
		if f.left--; f.left == 0 {
			f.now = nil
		}
	}
	return hit
}

// apply answers the request itself (done), or returns the writer through which Git shall answer.
func (f *faults) apply(w http.ResponseWriter, r *http.Request, op string) (_ http.ResponseWriter, done bool) {
	fault := f.take(op)
	switch {
	case fault == nil:
		return w, false
	case fault.RedirectTo != "":
		http.Redirect(w, r, fault.RedirectTo+r.URL.RequestURI(), http.StatusFound)
		return w, true
	case fault.Status != 0:
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		w.WriteHeader(fault.Status)
		_, _ = w.Write([]byte(fault.Body))
		return w, true
	case fault.Stall:
		return &limitedWriter{ResponseWriter: w, left: fault.StallAfter, end: func() { <-r.Context().Done() }}, false
	case fault.Cut:
		return &limitedWriter{ResponseWriter: w, left: fault.CutAfter, end: func() { panic(http.ErrAbortHandler) }}, false
	}
	return w, false
}

// limitedWriter lets a number of bytes through and then calls end.
type limitedWriter struct {
	http.ResponseWriter
	left int
	end  func()
}

func (w *limitedWriter) WriteHeader(code int) {
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	written, err := w.ResponseWriter.Write(p[:n])
	if err != nil || n == len(p) {
		return written, err
	}
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	w.end()
	return written, context.Canceled
}

// StartBlackhole listens, accepts and never says a word, until Close is called or ctx ends. Its address alone is of
// use: a client that speaks HTTP, TLS or SSH waits for ever.
func StartBlackhole(ctx context.Context) (*Server, error) {
	listener, err := listenLoopback()
	if err != nil {
		return nil, err
	}
	s := &Server{scheme: "http", addr: listener.Addr().String()}
	var wg sync.WaitGroup
	conns := newConnSet()
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.counts.add("", Counts{InfoRefs: 1})
			conns.add(conn)
		}
	})
	stopWatch := context.AfterFunc(ctx, func() { _ = s.Close() })
	s.stop = func() error {
		stopWatch()
		err := listener.Close()
		wg.Wait()
		conns.close()
		return err
	}
	return s, nil
}

// connSet keeps connections open until all are closed at once.
type connSet struct {
	mu    sync.Mutex
	conns []net.Conn
}

func newConnSet() *connSet { return &connSet{} }

func (c *connSet) add(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
}

func (c *connSet) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// Port of the server's address.
func (s *Server) Port() int {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}
