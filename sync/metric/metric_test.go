package metric_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/metric"
	"github.com/mooring-dev/mooring/test/prometheus"
)

// shop serves what a mesh would: three of four calls succeed, at each reading a hundred more.
func shop(t *testing.T) string {
	t.Helper()
	var readings atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := readings.Add(1)
		_, _ = fmt.Fprintf(w, "calls_total{code=\"200\"} %d\ncalls_total{code=\"500\"} %d\n", 75*n, 25*n)
		_, _ = fmt.Fprint(w, "latency{app=\"cart\"} 250.004\nlatency{app=\"shop\"} 90\nlatency{app=\"auth\"} 310\nsuccess{app=\"cart\"} 0.98999999\n")
		for i := range 3000 {
			_, _ = fmt.Fprintf(w, "many{of=%q} 1\n", fmt.Sprintf("%d-%s", i, strings.Repeat("x", 400)))
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestAskARealPrometheus(t *testing.T) {
	t.Parallel()
	p := prometheus.Start(t, shop(t))
	p.Await(`rate(calls_total[1m])`)
	for _, test := range []struct {
		name string
		q    metric.Query
		want metric.Answer
	}{
		{
			name: "a rate over the soak",
			q:    metric.Query{Expr: `sum(rate(calls_total{code="200"}[$soak])) / sum(rate(calls_total[$soak]))`, Soak: 90 * time.Minute, Min: "0.70"},
			want: metric.Answer{Good: true, Words: "q is 0.75, at least 0.70"},
		},
		{
			name: "a rate that is too low",
			q:    metric.Query{Expr: `sum(rate(calls_total{code="200"}[$soak])) / sum(rate(calls_total[$soak]))`, Soak: 30 * time.Second, Min: "0.99"},
			want: metric.Answer{Words: "q is 0.75, want at least 0.99"},
		},
		{
			name: "a scalar", q: metric.Query{Expr: "1+1", Min: "1", Max: "3"},
			want: metric.Answer{Good: true, Words: "q is 2, between 1 and 3"},
		},
		{
			name: "the bound itself is within", q: metric.Query{Expr: "3", Min: "3", Max: "3"},
			want: metric.Answer{Good: true, Words: "q is 3, between 3 and 3"},
		},
		{
			name: "a negative bound", q: metric.Query{Expr: "-5", Min: "-4.5"},
			want: metric.Answer{Words: "q is -5, want at least -4.5"},
		},
		{
			name: "every series is within", q: metric.Query{Expr: "latency", Max: "310"},
			want: metric.Answer{Good: true, Words: "q is 90 to 310 over 3 series, at most 310"},
		},
		{
			name: "one series is not", q: metric.Query{Expr: "latency", Max: "300"},
			want: metric.Answer{Words: fmt.Sprintf(`q is 310 for latency{app="auth", instance=%q, job="shop"}, want at most 300`, p.Target)},
		},
		{
			name: "several are not: the first by its labels", q: metric.Query{Expr: "sum by (app) (latency)", Max: "100"},
			want: metric.Answer{Words: `q is 310 for {app="auth"}, want at most 100; 2 of 3 series are out of bounds`},
		},
		{
			name: "few digits, but none that hide the fault", q: metric.Query{Expr: `sum by (app) (latency{app="cart"})`, Max: "250"},
			want: metric.Answer{Words: `q is 250.004 for {app="cart"}, want at most 250`},
		},
		{
			name: "many digits", q: metric.Query{Expr: `sum(success)`, Min: "0.99"},
			want: metric.Answer{Words: `q is 0.98999999, want at least 0.99`},
		},
		{
			name: "no data", q: metric.Query{Expr: "latency_that_nobody_counts", Max: "100"},
			want: metric.Answer{Words: "q has no data, want at most 100"},
		},
		{
			name: "a comparison that filters all away", q: metric.Query{Expr: "latency > 1000", Max: "100"},
			want: metric.Answer{Words: "q has no data, want at most 100"},
		},
		{
			name: "not a number", q: metric.Query{Expr: "sum by (app) (latency) * 0 / 0", Min: "0"},
			want: metric.Answer{Words: `q is NaN (0/0, as when nothing was counted) for {app="auth"}, want at least 0; 3 of 3 series are out of bounds`},
		},
		{
			name: "infinite", q: metric.Query{Expr: "1/0", Min: "0"},
			want: metric.Answer{Words: "q is infinite, want at least 0"},
		},
		{
			name: "infinitely little", q: metric.Query{Expr: "-1/0", Max: "0"},
			want: metric.Answer{Words: "q is infinite, want at most 0"},
		},
		{
			name: "a text", q: metric.Query{Expr: `"0.99"`, Min: "0"},
			want: metric.Answer{Words: "q is a text, want a number"},
		},
		{
			name: "a range", q: metric.Query{Expr: `latency[1m]`, Min: "0"},
			want: metric.Answer{Words: "q is a range of numbers, want one for each series: put a function such as rate or avg_over_time around it"},
		},
		{
			name: "what only begins like the variable", q: metric.Query{Expr: `label_replace(vector(1), "a", "$soaked", "", "")`, Min: "0"},
			want: metric.Answer{Good: true, Words: "q is 1, at least 0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.q.Name, test.q.Address = "q", p.URL
			got, err := metric.Ask(t.Context(), test.q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	for _, test := range []struct {
		name, expr, min string
		kind            metric.Kind
		words           string
	}{
		{
			"not PromQL", "rate(calls_total[5m)", "0", metric.KindQuery,
			`Prometheus says: invalid parameter "query": 1:20: parse error: unexpected ")" in subquery or range, expected ":" or "]"`,
		},
		{"cannot be evaluated", "latency + on (job) latency", "0", metric.KindQuery, "Prometheus says: found duplicate series for the match group"},
		{"too large", "many", "0", metric.KindTooLarge, "the answer is larger than 1 MiB"},
		{"no soak", "rate(calls_total[$soak])", "0", metric.KindQuery, "the query has $soak, and there is no soak"},
		{"no bound", "1", "", metric.KindQuery, "there is no bound: set min, max or both"},
		{"no number", "1", "NaN", metric.KindQuery, `the bound "NaN" is not a decimal number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := metric.Ask(t.Context(), metric.Query{Name: "q", Address: p.URL, Expr: test.expr, Min: test.min})
			wantError(t, err, test.kind, "ask "+strings.TrimPrefix(p.URL, "http://")+" for q: "+test.words)
		})
	}
	t.Run("a path that is not the API's", func(t *testing.T) {
		_, err := metric.Ask(t.Context(), metric.Query{Name: "q", Address: p.URL + "/api/v1/", Expr: "1", Min: "0"})
		wantError(t, err, metric.KindAddress, "it answers 404 Not Found, not as Prometheus' API does")
	})
	t.Run("the caller ends", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the agent ends"))
		_, err := metric.Ask(ctx, metric.Query{Name: "q", Address: p.URL, Expr: "1", Min: "0"})
		if err == nil || metric.KindOf(err) != "" || err.Error() != "ask for q: the agent ends" {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		p.Kill()
		_, err := metric.Ask(t.Context(), metric.Query{Name: "q", Address: p.URL, Expr: "1", Min: "0"})
		wantError(t, err, metric.KindUnreachable, "connection refused")
	})
}

// A Prometheus that gives up by itself says so with a status whose body its own client does not read.
func TestPrometheusRunsOutOfTime(t *testing.T) {
	t.Parallel()
	p := prometheus.Start(t, shop(t))
	p.Await("up")
	_, err := metric.Ask(t.Context(), metric.Query{
		Name: "q", Address: p.URL, Min: "0", Patience: 50 * time.Millisecond,
		Expr: `max_over_time(count(count_over_time({__name__=~".+"}[1h]))[5h:20ms])`,
	})
	wantError(t, err, metric.KindTooSlow, "there is no answer in time")
}

// The hash of "correct horse".
const hash = "$2a$04$smp5PaeOXRi7uUC5TDbefu9Oi9/rrlZ7YBBvQhrBeu2.6uCCREgUS"

func TestCredentials(t *testing.T) {
	t.Parallel()
	p := prometheus.Start(t, shop(t), prometheus.User("mooring", hash))
	secret := map[string][]byte{"username": []byte("mooring"), "password": []byte("correct horse"), "ca.crt": p.CA}
	ask := func(data map[string][]byte) error {
		auth, err := metric.AuthOf(data)
		if err != nil {
			return err
		}
		_, err = metric.Ask(t.Context(), metric.Query{Name: "q", Address: p.URL, Expr: "1", Min: "0", Auth: auth})
		return err
	}
	if err := ask(secret); err != nil {
		t.Error(err)
	}
	with := func(key, value string) map[string][]byte {
		data := map[string][]byte{}
		for k, v := range secret {
			data[k] = v
		}
		data[key] = []byte(value)
		return data
	}
	err := ask(with("password", "hunter2"))
	wantError(t, err, metric.KindDenied, "it answers 401 Unauthorized")
	if strings.Contains(err.Error()+metric.HintOf(err), "hunter2") {
		t.Errorf("the error tells the password: %v", err)
	}
	wantError(t, ask(map[string][]byte{"ca.crt": p.CA}), metric.KindDenied, "it answers 401 Unauthorized")
	err = ask(with("ca.crt", ""))
	wantError(t, err, metric.KindUnreachable, "x509: certificate signed by unknown authority")
	if got := metric.HintOf(err); got != "if it has a private authority, put its certificate into the Secret as ca.crt" {
		t.Errorf("the hint is %q", got)
	}
	wantError(t, ask(with("password", "")), metric.KindCredentials, "the Secret holds only one of username and password")
	wantError(t, ask(with("ca.crt", "PEM")), metric.KindCredentials, "ca.crt holds no certificate")
	wantError(t, ask(with("bearerToken", "t")), metric.KindCredentials, "both a bearerToken and a password")
	wantError(t, ask(map[string][]byte{"token": []byte("t")}), metric.KindCredentials, "none of the keys")
	wantError(t, ask(map[string][]byte{"bearerToken": []byte("a\nb")}), metric.KindCredentials, "has several lines")
}

// Nothing that the credentials could leak through, and nothing that a tenant could read by.
func TestWhatIsNotPrometheus(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	// A handler that never answers is still there when the next test begins.
	var reply atomic.Pointer[http.HandlerFunc]
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // else the server does not notice that the client goes
		if got := r.Header.Get("Authorization"); got != "Bearer hunter2" {
			t.Errorf("the server sees the credentials %q", got)
		}
		(*reply.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	body := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, text)
		}
	}
	const vector = `{"status":"success","warnings":["a store is away"],"data":{"resultType":"vector","result":[%s]}}`
	q := metric.Query{Name: "q", Address: s.URL, Expr: "1", Min: "0", Auth: metric.Auth{BearerToken: "hunter2", CA: pemOf(s)}}
	for _, test := range []struct {
		name  string
		reply http.HandlerFunc
		kind  metric.Kind
		words string
	}{
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, metric.KindAddress, "it answers 307 Temporary Redirect"},
		{"a page", body(200, "<html>the token is hunter2</html>"), metric.KindAddress, "it answers 200 OK, not as Prometheus' API does"},
		{"other JSON", body(200, `{"kind":"Secret","data":{"a":"hunter2"}}`), metric.KindUnreachable, "the answer broke off or is not that of Prometheus' API"},
		{"half an answer", body(200, fmt.Sprintf(vector, `{"metric":{},"value":[1,"1"]}`)[:100]), metric.KindAddress, "it answers 200 OK, not as"},
		{"an answer that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = fmt.Fprint(w, "{")
		}, metric.KindUnreachable, "the answer broke off"},
		{"a page with 400", body(400, "hunter2"), metric.KindAddress, "it answers 400 Bad Request, not as"},
		{"a page with 503", body(503, "hunter2"), metric.KindUnreachable, "it answers 503 Service Unavailable"},
		{"no right", body(403, "hunter2"), metric.KindDenied, "it answers 403 Forbidden"},
		{"too many requests", body(429, ""), metric.KindAddress, "it answers 429"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, metric.KindTooSlow, "there is no answer in time"},
		{"an answer without end", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}, metric.KindTooLarge, "the answer is larger than 1 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			reply.Store(&test.reply)
			q := q
			if test.kind == metric.KindTooSlow {
				q.Patience = 100 * time.Millisecond
			}
			_, err := metric.Ask(t.Context(), q)
			wantError(t, err, test.kind, test.words)
			if strings.Contains(err.Error()+metric.HintOf(err), "hunter2") {
				t.Errorf("the error tells what it should not: %v", err)
			}
		})
	}
	if asked.Load() > 0 {
		t.Error("a redirect was followed")
	}
	t.Run("warnings and a histogram", func(t *testing.T) {
		answer := body(200, fmt.Sprintf(vector, `{"metric":{"a":"b"},"histogram":[1,{"count":"1","sum":"1","buckets":[[0,"0","1","1"]]}]},{"metric":{},"value":[1,"1"]}`))
		reply.Store(&answer)
		got, err := metric.Ask(t.Context(), q)
		want := metric.Answer{
			Words:    `q is a histogram for {a="b"}, want at least 0; Prometheus warns: a store is away`,
			Warnings: []string{"a store is away"},
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
		}
	})
}

func TestNoCredentialsOverHTTP(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("there was a request") }))
	defer s.Close()
	for _, auth := range []metric.Auth{{BearerToken: "hunter2"}, {Username: "mooring", Password: "hunter2"}} {
		_, err := metric.Ask(t.Context(), metric.Query{Name: "q", Address: s.URL, Expr: "1", Min: "0", Auth: auth})
		wantError(t, err, metric.KindCredentials, "credentials are never sent over http")
	}
	for _, address := range []string{"http://me:hunter2@127.0.0.1:1", "https://me:hunter2@127.0.0.1:1", "http://me:hunter2@[::1", "ftp://127.0.0.1", "prometheus:9090", ""} {
		_, err := metric.Ask(t.Context(), metric.Query{Name: "q", Address: address, Expr: "1", Min: "0"})
		wantError(t, err, metric.KindAddress, "ask for q: the address ")
		if strings.Contains(err.Error()+metric.HintOf(err), "hunter2") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func wantError(t *testing.T, err error, kind metric.Kind, words string) {
	t.Helper()
	if err == nil || metric.KindOf(err) != kind || !strings.Contains(err.Error(), words) {
		t.Fatalf("error of kind %q: %v; want %q: … %s …", metric.KindOf(err), err, kind, words)
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
