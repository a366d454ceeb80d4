package apply

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// candid is a transport that does not wait for what will not come. When the API server cannot read a kind, because its conversion webhook is dead, it answers 429
// and asks to come again, later each time; client-go does so ten times, which takes minutes, and what the server said of the cause is lost when the
// pass runs out of time. With a cause it is an answer; without one the server has only just begun to read.
type candid struct{ next http.RoundTripper }

// RoundTrip takes the request to come again out of such an answer.
func (c candid) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusTooManyRequests {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	res.Header.Set("Content-Length", strconv.Itoa(len(body)))
	if bytes.Contains(body, []byte("storage is (re)initializing: ")) {
		res.Header.Del("Retry-After")
	}
	return res, nil
}
