package kube

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Request is a sort of request, as the API server counts them.
type Request struct {
	// Verb is GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION or CONNECT. An APPLY is a server-side apply; PATCH is
	// every other patch. A WATCH is counted when it ends, not when it begins.
	Verb string
	// Group is empty for the core group.
	Group, Resource, Subresource string
	// DryRun is true for what changed nothing.
	DryRun bool
}

// Write says whether the request may have changed something.
func (r Request) Write() bool {
	return !r.DryRun && !slices.Contains([]string{"GET", "LIST", "WATCH"}, r.Verb)
}

// String writes, say, "APPLY networking.istio.io/virtualservices/status (dry run)".
func (r Request) String() string {
	name := r.Resource
	if r.Group != "" {
		name = r.Group + "/" + name
	}
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	if r.DryRun {
		name += " (dry run)"
	}
	return r.Verb + " " + name
}

// Requests are counts of requests.
type Requests map[Request]int

// Since gives what was added after an earlier count. A restart of the API server begins from zero: count anew after one.
func (r Requests) Since(before Requests) Requests {
	added := make(Requests)
	for request, n := range r {
		if n -= before[request]; n != 0 {
			added[request] = n
		}
	}
	return added
}

// Only keeps the requests that keep says yes to.
func (r Requests) Only(keep func(Request) bool) Requests {
	kept := make(Requests)
	for request, n := range r {
		if keep(request) {
			kept[request] = n
		}
	}
	return kept
}

// Total of all counts.
func (r Requests) Total() int {
	total := 0
	for _, n := range r {
		total += n
	}
	return total
}

// String writes a sort a line, sorted.
func (r Requests) String() string {
	var lines []string
	for request, n := range r {
		lines = append(lines, fmt.Sprintf("%6d %s", n, request))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	return strings.Join(lines, "\n")
}

// CountRequests reads how many requests for objects the API server has answered so far, out of its own metrics
// (apiserver_request_total). Leases are left out, and so is what concerns no object: health, discovery, schemas.
//
// The metric does not say who asked. The control plane's own controllers ask too: when something is deleted,
// when a namespace comes or goes, and when a kind is new to the garbage collector (LIST, within 30 seconds). The API server's own
// upkeep concerns the groups apiregistration.k8s.io, flowcontrol.apiserver.k8s.io, rbac.authorization.k8s.io and
// the namespaces of the system. At rest they only watch. So a test that wants "no request" looks at the kinds that it is about.
func (c *Cluster) CountRequests(ctx context.Context) (Requests, error) {
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("count requests: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("count requests: GET /metrics: %s", res.Status)
	}
	counts := make(Requests)
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := counts.add(lines.Text()); err != nil {
			return nil, fmt.Errorf("count requests: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("count requests: %w", err)
	}
	return counts, nil
}

// Requests is CountRequests for tests.
func (c *Cluster) Requests(t testing.TB) Requests {
	t.Helper()
	counts, err := c.CountRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// add takes one line of the text format of Prometheus. No value among these labels holds a quote or a brace.
func (r Requests) add(line string) error {
	labels, ok := strings.CutPrefix(line, "apiserver_request_total{")
	if !ok {
		return nil
	}
	labels, value, ok := strings.Cut(labels, "} ")
	if !ok {
		return fmt.Errorf("parse metric %q", line)
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("parse metric %q: %w", line, err)
	}
	label := make(map[string]string)
	for pair := range strings.SplitSeq(strings.TrimSuffix(labels, `"`), `",`) {
		name, value, _ := strings.Cut(pair, `="`)
		label[name] = value
	}
	if label["resource"] == "" || label["resource"] == "leases" {
		return nil
	}
	r[Request{
		Verb: label["verb"], Group: label["group"], Resource: label["resource"], Subresource: label["subresource"],
		DryRun: label["dry_run"] != "",
	}] += int(n)
	return nil
}
