package istiod

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// answerTime bounds every single question: an istiod that has stopped in the middle of an answer is asked anew.
const answerTime = 15 * time.Second

// line is a way to the debug interface of one istiod.
type line struct {
	client *http.Client
	base   string // http://host:port
	token  string // file; empty for none
	end    func() // ends what the client stands on
}

func (l *line) close() {
	closeIdle(l.client)
	if l.end != nil {
		l.end()
	}
}

// get asks for a page and hands the answer to read.
func (l *line) get(ctx context.Context, page string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+page, nil)
	if err != nil {
		return err
	}
	if l.token != "" {
		token, err := os.ReadFile(l.token)
		if err != nil {
			return &unaskableError{reason: fmt.Sprintf("read the token for istiod: %v", err)}
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return refusal(page, response.StatusCode)
	}
	if err := read(bufio.NewReaderSize(response.Body, 64<<10)); err != nil {
		return fmt.Errorf("read the answer of %s: %w", page, err)
	}
	return nil
}

// refusal says what a status means and what to do about it.
func refusal(page string, code int) error {
	hint := ""
	switch code {
	case http.StatusUnauthorized:
		hint = "it wants a token of the audience istio-ca; see --istiod-token-file"
	case http.StatusForbidden:
		hint = "it answers namespaces that its DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES names"
	case http.StatusNotFound:
		hint = "its debug interface is switched off (ENABLE_DEBUG_ON_HTTP)"
	default:
		return fmt.Errorf("%s answers %d", page, code)
	}
	return &unaskableError{reason: fmt.Sprintf("%s answers %d %s: %s", page, code, http.StatusText(code), hint)}
}

// sample is what an istiod said at one moment.
type sample struct {
	began, ended time.Time
	proxies      []proxy
	counters     counters
}

// counters of an istiod's work since it started.
type counters struct {
	// known is false where there are no metrics.
	known bool
	// updates are the events that lead to a push.
	updates float64
	// contexts are the pushes for which the configuration has been computed.
	contexts float64
	// computing is how long that takes, in the mean.
	computing time.Duration
	// dequeued are the proxies that have been taken out of the queue of pushes, whether they needed one or not.
	dequeued float64
}

// sample asks for the proxies and then for the counters, so that what the counters say is no older.
func (l *line) sample(ctx context.Context) (s sample, err error) {
	s.began = time.Now()
	err = l.get(ctx, "/debug/syncz", func(r io.Reader) (err error) {
		s.proxies, err = readProxies(r)
		return err
	})
	if err != nil {
		return s, err
	}
	err = l.get(ctx, "/metrics", func(r io.Reader) error {
		s.counters = readCounters(r)
		return nil
	})
	var unaskable *unaskableError
	if errors.As(err, &unaskable) {
		err = nil // it has no metrics on this port, or not for us
	}
	s.ended = time.Now()
	return s, err
}

// readCounters picks a few numbers out of an exposition for Prometheus.
func readCounters(r io.Reader) counters {
	var c counters
	var computed float64
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Bytes()
		if !bytes.HasPrefix(text, []byte("pilot_")) {
			continue
		}
		name, value := metric(text)
		switch name {
		case `pilot_inbound_updates{type="config"}`:
			c.updates = value
		case "pilot_pushcontext_init_seconds_count":
			c.contexts, c.known = value, true
		case "pilot_pushcontext_init_seconds_sum":
			computed = value
		case "pilot_proxy_queue_time_count":
			c.dequeued = value
		}
	}
	if c.contexts > 0 {
		c.computing = time.Duration(computed / c.contexts * float64(time.Second))
	}
	return c
}

func metric(text []byte) (name string, value float64) {
	cut := bytes.LastIndexByte(text, ' ')
	if cut < 0 {
		return "", 0
	}
	value, err := strconv.ParseFloat(string(text[cut+1:]), 64)
	if err != nil {
		return "", 0
	}
	return string(text[:cut]), value
}

// head is what is looked at of an object of /debug/configz.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string    `json:"name"`
		Namespace       string    `json:"namespace"`
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion"`
	} `json:"metadata"`
}

// service is what is looked at of a service of /debug/registryz.
type service struct {
	ResourceVersion string
	Attributes      struct {
		ServiceRegistry, Name, Namespace string
	}
}

// configs hands every Istio object that istiod has to visit.
func (l *line) configs(ctx context.Context, visit func(head)) error {
	return l.get(ctx, "/debug/configz", func(r io.Reader) error { return each(r, visit) })
}

// services hands every service that istiod knows to visit.
func (l *line) services(ctx context.Context, visit func(service)) error {
	return l.get(ctx, "/debug/registryz", func(r io.Reader) error { return each(r, visit) })
}

// reads are the kinds that istiod reads, with the version of each that it asks for.
func (l *line) reads(ctx context.Context) (map[schema.GroupKind]schema.GroupVersionKind, error) {
	reads := make(map[schema.GroupKind]schema.GroupVersionKind)
	err := l.get(ctx, "/debug/resourcesz", func(r io.Reader) error {
		return each(r, func(kind schema.GroupVersionKind) {
			reads[kind.GroupKind()] = kind
		})
	})
	return reads, err
}

// selectors say in which namespaces istiod reads; none means in all.
func (l *line) selectors(ctx context.Context) ([]metav1.LabelSelector, error) {
	var config struct {
		DiscoverySelectors []metav1.LabelSelector `json:"discoverySelectors"`
	}
	err := l.get(ctx, "/debug/mesh", func(r io.Reader) error {
		err := json.NewDecoder(r).Decode(&config)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	return config.DiscoverySelectors, err
}
