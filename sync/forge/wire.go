package forge

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	userAgent = "mooring"
	// maxAnswer is how much of an answer is read. Fifty pull requests with the longest bodies that GitHub takes are a third of it.
	maxAnswer = 16 << 20
)

var errTooLong = errors.New("answer too long")

// wire is what a client speaks over during one Propose. It bounds what is read, and keeps the last answer that was no success: every client
// has another way to tell of it, and some leave out what matters.
type wire struct {
	next http.RoundTripper

	mu   sync.Mutex
	last *refusal
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.keep(nil)
	answer, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: maxAnswer}
	if answer.StatusCode >= 300 {
		body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
		if err != nil {
			body = nil // the status says enough
		}
		_ = answer.Body.Close() // read
		answer.Body = io.NopCloser(strings.NewReader(string(body)))
		w.keep(&refusal{status: answer.StatusCode, header: answer.Header, words: words(body), method: r.Method})
	}
	return answer, nil
}

func (w *wire) keep(r *refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = r
}

func (w *wire) refusal() *refusal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// bounded fails where io.LimitReader would pretend that the answer ends.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
