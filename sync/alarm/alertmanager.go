package alarm

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

const (
	// lasts is how long an alert lasts of which an Alertmanager hears nothing more.
	lasts = 5 * resend
	// maxAlerts of one request.
	maxAlerts = 500
	// maxAnswer is how much of an answer is read.
	maxAnswer = 4 << 10
)

// alert as the API v2 takes it: postableAlert.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

// alertmanager is a receiver.
type alertmanager struct {
	spec   *v1alpha1.AlertmanagerReceiver
	data   map[string][]byte
	client *http.Client
}

// newAlertmanager takes what the Secret holds: the same keys as a Mooring's for Git.
func newAlertmanager(spec *v1alpha1.AlertmanagerReceiver, data map[string][]byte) (*alertmanager, error) {
	invalid := func(format string, args ...any) error {
		return &problem{v1alpha1.AlarmReasonInvalidSecret, fmt.Sprintf("read Secret %s: ", spec.SecretRef.Name) + fmt.Sprintf(format, args...)}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca := data["ca.crt"]; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, invalid("ca.crt holds no certificate in PEM")
		}
	}
	if cert, key := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]; len(cert) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil { // its words may hold what is in the key
			return nil, invalid("tls.crt and tls.key are not a certificate and its key in PEM")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if len(data["bearerToken"]) > 0 && len(data[corev1.BasicAuthPasswordKey]) > 0 {
		return nil, invalid("it holds both a bearerToken and a password: one of them")
	}
	return &alertmanager{spec: spec, data: data, client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true},
		// Another place is not the one that the spec names, and must not get the credentials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// send the batch, and again all that is open.
func (a *alertmanager) send(ctx context.Context, j *job) error {
	for some := range slices.Chunk(a.alerts(j, time.Now()), maxAlerts) {
		if err := a.post(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// alerts of a job. One and the same alert comes only once: what the batch says is newer.
func (a *alertmanager) alerts(j *job, now time.Time) []alert {
	var all []alert
	changed := map[place]bool{}
	add := func(c change, n []note, starts, ends time.Time) {
		changes := []change{c}
		if len(n) > 0 {
			changes = nil
		}
		all = append(all, a.alert(j, changes, n, starts, ends))
	}
	if j.batch != nil {
		for _, c := range j.batch.changes {
			changed[c.place] = true
			if c.before != nil { // it is another alert by its labels
				add(change{place: c.place, fault: *c.before}, nil, c.before.since, now)
			}
			if c.over {
				c.over = false // the words are those of the fault: that it is over, its end says
				add(c, nil, c.fault.since, now)
			} else {
				add(c, nil, c.fault.since, now.Add(lasts))
			}
		}
		for _, n := range j.batch.notes {
			add(change{}, []note{n}, n.at, n.at.Add(lasts))
		}
	}
	for p, f := range j.open {
		if !changed[p] {
			add(change{place: p, fault: f}, nil, f.since, now.Add(lasts))
		}
	}
	return all
}

// alert about one fault or one note.
func (a *alertmanager) alert(j *job, changes []change, notes []note, starts, ends time.Time) alert {
	m := messageOf(j.alarm.Namespace+"/"+j.alarm.Name, changes, notes)
	title, text := j.words.say(m)
	g := slices.Concat(m.Firing, m.Happened)[0]
	namespace, name, _ := strings.Cut(g.Moorings[0], "/")
	labels := map[string]string{
		"alertname": "Mooring" + strings.ToUpper(string(g.Event[:1])) + string(g.Event[1:]), "severity": severity(g.Event),
		"event": string(g.Event), "mooring_namespace": namespace, "mooring": name,
	}
	if g.Reason != "" {
		labels["reason"] = g.Reason
	}
	for k, v := range a.spec.Labels {
		labels[k] = string(v)
	}
	if starts.IsZero() { // nobody knows since when
		starts = ends.Add(-lasts)
	}
	return alert{Labels: labels, Annotations: map[string]string{"summary": title, "description": text}, StartsAt: starts.UTC(), EndsAt: ends.UTC()}
}

// severity of an event, in the words that most routes of Alertmanager know.
func severity(e v1alpha1.AlarmEvent) string {
	switch e {
	case v1alpha1.AlarmApplied, v1alpha1.AlarmDriftCorrected:
		return "info"
	case v1alpha1.AlarmFailed, v1alpha1.AlarmFight:
		return "critical"
	}
	return "warning"
}

func (a *alertmanager) post(ctx context.Context, alerts []alert) error {
	body, err := json.Marshal(alerts)
	if err != nil {
		return fmt.Errorf("write alerts: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(a.spec.URL, "/")+"/api/v2/alerts", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token := strings.TrimSpace(string(a.data["bearerToken"])); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	} else if password := a.data[corev1.BasicAuthPasswordKey]; len(password) > 0 {
		req.SetBasicAuth(string(a.data[corev1.BasicAuthUsernameKey]), string(password))
	}
	res, err := a.client.Do(req)
	if err != nil {
		if short, ok := errors.AsType[*url.Error](err); ok {
			err = short.Err // without the method and the address, which the spec has
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("there was no answer within %s", patience)
		}
		return fmt.Errorf("send to Alertmanager: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // an answer that breaks off is as good as none
	switch {
	case res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusBadRequest: // Alertmanager's own words about what we sent; else the answer may be anybody's
		return fmt.Errorf("send to Alertmanager: it answers %s: %s", res.Status, clip(strings.TrimSpace(string(answer)), 200))
	case res.StatusCode < 400:
		return fmt.Errorf("send to Alertmanager: it answers %s: name the address that it leads to", res.Status)
	}
	return fmt.Errorf("send to Alertmanager: it answers %s", res.Status)
}
