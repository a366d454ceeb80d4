package apply_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mooring-dev/mooring/test/kube"
)

// busy answers every third request as the API server's flow control does when it is full.
type busy struct {
	http.RoundTripper
	asked, refused, writes atomic.Int64
}

func (b *busy) RoundTrip(req *http.Request) (*http.Response, error) {
	if n := b.asked.Add(1); n%3 == 0 {
		b.refused.Add(1)
		return &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"text/plain"}}, Request: req,
			Body: io.NopCloser(strings.NewReader("Too many requests, please try again later.")),
		}, nil
	}
	if req.Method == http.MethodPatch && req.URL.Query().Get("dryRun") == "" {
		b.writes.Add(1)
	}
	return b.RoundTripper.RoundTrip(req)
}

// The API server says how fast we may be: what it refuses for now is asked again after the time that it names, and nothing is written twice.
func TestBusyServerIsObeyed(t *testing.T) {
	const n = 300
	cluster := kube.Start(t)
	cfg := cluster.Config()
	b := &busy{}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		b.RoundTripper = next
		return b
	})
	f := newFixtureAs(t, cluster, cfg)
	var stream strings.Builder
	for i := range n {
		fmt.Fprintf(&stream, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d, namespace: $NS}\n---\n", i)
	}
	_, r := f.sync(stream.String())
	if got := r.Counts().Create; got != n || len(r.Failed()) > 0 {
		t.Errorf("%d created, %d failed, want all %d", got, len(r.Failed()), n)
	}
	if b.writes.Load() != n {
		t.Errorf("%d writes for %d objects", b.writes.Load(), n)
	}
	if b.refused.Load() < n/3 {
		t.Errorf("only %d requests were refused: the test shows nothing", b.refused.Load())
	}
	f.settled(stream.String())
}
