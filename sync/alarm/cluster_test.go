package alarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/mooring-dev/mooring/sync/alarm"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/alertmanager"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the client of the API server would complain that there is none
	os.Exit(kube.Run(m))
}

// site is a namespace of a real cluster.
type site struct {
	client.Client
	t       *testing.T
	cluster *kube.Cluster
	ns      string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, cluster: kube.Start(t)}
	s.ns = s.cluster.Namespace(t)
	var err error
	if s.Client, err = client.New(s.cluster.Config(), client.Options{Scheme: scheme()}); err != nil {
		t.Fatal(err)
	}
	return s
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s) // fails for conflicting types only
	_ = v1alpha1.AddToScheme(s)
	return s
}

// agent keeps the Alarms of the site until stop is called, or until the test is over.
func (s *site) agent() (d *alarm.Dispatcher, stop func()) {
	s.t.Helper()
	mgr, err := ctrl.NewManager(s.cluster.Config(), ctrl.Options{
		Scheme: scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{s.ns: {}}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	d = alarm.New(alarm.Options{Client: mgr.GetClient(), Live: mgr.GetAPIReader()})
	if err := d.AddTo(mgr); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return d, stop
}

// alarm makes one that gathers for a short while.
func (s *site) alarm(name string, spec v1alpha1.AlarmSpec) {
	s.t.Helper()
	spec.GroupWait = metav1.Duration{Duration: 500 * time.Millisecond}
	s.create(&v1alpha1.Alarm{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Spec: spec})
}

func (s *site) create(o client.Object) {
	s.t.Helper()
	if err := s.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) secret(name string, data map[string]string) {
	s.t.Helper()
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, StringData: data})
}

func shoutTo(secret string) v1alpha1.AlarmSpec {
	return v1alpha1.AlarmSpec{Shoutrrr: &v1alpha1.ShoutrrrReceiver{SecretRef: v1alpha1.ShoutrrrSecret{Name: secret}}}
}

// until polls an Alarm's status.
func (s *site) until(name, what string, right func(v1alpha1.AlarmStatus) bool) v1alpha1.AlarmStatus {
	s.t.Helper()
	a := &v1alpha1.Alarm{}
	eventually(s.t, what, func() (string, bool) {
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, a); err != nil {
			s.t.Fatal(err)
		}
		text, _ := json.Marshal(a.Status)
		return string(text), right(a.Status)
	})
	return a.Status
}

func ready(reason string) func(v1alpha1.AlarmStatus) bool {
	return func(s v1alpha1.AlarmStatus) bool { return len(s.Conditions) == 1 && s.Conditions[0].Reason == reason }
}

func sent(n int64) func(v1alpha1.AlarmStatus) bool {
	return func(s v1alpha1.AlarmStatus) bool { return s.Sent >= n }
}

func eventually(t *testing.T, what string, done func() (string, bool)) {
	t.Helper()
	poll.Await(t, time.Minute, what, func() error {
		if last, ok := done(); !ok {
			return errors.New(last)
		}
		return nil
	})
}

// mooring of the site after a pass, as the API server has it, too.
func (s *site) mooring(name, reason, message string) *v1alpha1.Mooring {
	s.t.Helper()
	wanted := mooring(s.ns+"/"+name, reason, message)
	m := &v1alpha1.Mooring{}
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(wanted), m); err != nil {
		m = wanted.DeepCopy()
		m.Spec.Source = v1alpha1.Source{URL: "https://git.example.com/a/b.git", Ref: v1alpha1.Ref{Branch: "main"}}
		s.create(m)
	}
	m.Status = wanted.Status
	if err := s.Status().Update(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// webhook notes the bodies that it gets.
type webhook struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	status int
}

func newWebhook(t *testing.T) *webhook {
	w := &webhook{status: http.StatusOK}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.status == http.StatusOK {
			w.bodies = append(w.bodies, r.URL.Path+" "+string(body))
		}
		out.WriteHeader(w.status)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *webhook) got() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.bodies...)
}

func (w *webhook) answer(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

// url is the webhook as shoutrrr writes it.
func (w *webhook) url(path string) string {
	return "generic://" + strings.TrimPrefix(w.URL, "http://") + path + "?disabletls=yes&template=json"
}

func TestAlertmanagerIsToldOfAFaultAndItsEnd(t *testing.T) {
	s, manager := newSite(t), alertmanager.Start(t)
	d, stop := s.agent()
	s.alarm("pager", v1alpha1.AlarmSpec{Alertmanager: &v1alpha1.AlertmanagerReceiver{URL: manager.URL, Labels: map[string]v1alpha1.AlertLabel{"cluster": "prod"}}})
	s.until("pager", "listens", ready(v1alpha1.AlarmReasonListening))
	for range 3 {
		d.Passed(s.mooring("shop", failed, denied), report.Outcome{}, nil)
	}
	s.until("pager", "told", sent(1))
	alerts := manager.Alerts(t)
	if len(alerts) != 1 {
		t.Fatalf("%d alerts: %v", len(alerts), alerts)
	}
	want := map[string]string{
		"alertname": "MooringFailed", "severity": "critical", "event": "failed", "reason": "ApplyFailed", "mooring": "shop", "mooring_namespace": s.ns, "cluster": "prod",
	}
	for k, v := range want {
		if alerts[0].Labels[k] != v || len(alerts[0].Labels) != len(want) {
			t.Errorf("labels %v, want %v", alerts[0].Labels, want)
		}
	}
	if a := alerts[0]; !strings.Contains(a.Annotations["description"], denied) || !strings.Contains(a.Annotations["summary"], "failed (ApplyFailed)") {
		t.Errorf("annotations %v", a.Annotations)
	}
	if left := time.Until(alerts[0].EndsAt); left < 3*time.Minute || left > 6*time.Minute {
		t.Errorf("it ends in %s", left)
	}

	// Another agent takes over; the Mooring recovered meanwhile.
	stop()
	s.mooring("shop", applied, "")
	s.agent()
	s.until("pager", "the end is told", func(s v1alpha1.AlarmStatus) bool { return s.Sent == 2 && s.OpenCount == 0 })
	if alerts := manager.Alerts(t); len(alerts) != 0 {
		t.Errorf("still there: %v", alerts)
	}
	eventually(t, "one alarm and one recovery", func() (string, bool) {
		var statuses []string
		for _, n := range manager.Told() {
			statuses = append(statuses, n.Status)
		}
		got := strings.Join(statuses, ", ")
		return got, got == "firing, resolved"
	})
}

func TestWebhookGetsJSON(t *testing.T) {
	s, hook := newSite(t), newWebhook(t)
	d, stop := s.agent()
	s.secret("hook", map[string]string{"urls": "# the house's\n" + hook.url("/a") + "\n\n" + hook.url("/b") + "\n"})
	s.alarm("hook", shoutTo("hook"))
	s.until("hook", "listens", ready(v1alpha1.AlarmReasonListening))
	for i := range 200 { // one cause
		d.Passed(mooring(fmt.Sprintf("%s/m%03d", s.ns, i), failed, fmt.Sprintf("apply VirtualService/shop/r%d: denied by the webhook", i)), report.Outcome{}, nil)
	}
	s.until("hook", "told", sent(1))
	got := hook.got()
	if len(got) != 2 {
		t.Fatalf("want one message for each address, got %d: %v", len(got), got)
	}
	var body map[string]string
	if err := json.Unmarshal([]byte(got[0][3:]), &body); err != nil {
		t.Fatalf("%v: %s", err, got[0])
	}
	if body["title"] != "Mooring 200 Moorings: failed (ApplyFailed)" || body["status"] != "firing" || body["events"] != "failed" ||
		strings.Count(body["moorings"], ",") != 199 || !strings.Contains(body["message"], "denied by the webhook") {
		t.Errorf("body %v", body)
	}

	// What was told stays told, also for the next agent: nothing is sent. Moorings that are gone are closed without a word.
	stop()
	d, _ = s.agent()
	status := s.until("hook", "closed: no such Mooring is in the cluster", func(s v1alpha1.AlarmStatus) bool { return s.OpenCount == 0 })
	if n := len(hook.got()); n != 2 || status.Sent != 1 {
		t.Errorf("%d messages, %d sent", n, status.Sent)
	}

	// A Secret that is changed counts at once; an answer that is an error is tried again, and what the error says holds no part of the address.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "hook"}}
	if err := s.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"stringData":{"urls":%q}}`, hook.url("/token-of-mine")))); err != nil {
		t.Fatal(err)
	}
	hook.answer(http.StatusInternalServerError)
	d.Passed(mooring(s.ns+"/prod", failed, denied), report.Outcome{}, nil)
	status = s.until("hook", "it failed", ready(v1alpha1.AlarmReasonSendFailed))
	if e := status.LastError; !strings.Contains(e, "500") || strings.Contains(e, "token-of-mine") || strings.Contains(e, "127.0.0.1") || status.Failed == 0 {
		t.Errorf("last error %q, failed %d", e, status.Failed)
	}
	hook.answer(http.StatusOK)
	s.until("hook", "told after all", func(s v1alpha1.AlarmStatus) bool { return s.Sent == 2 && s.LastError == "" && ready("Listening")(s) })
	if got := hook.got(); len(got) != 3 || !strings.HasPrefix(got[2], "/token-of-mine ") {
		t.Errorf("messages %v", got)
	}
}

func TestWhatIsWrongWithAnAlarm(t *testing.T) {
	s, hook := newSite(t), newWebhook(t)
	s.secret("hook", map[string]string{"urls": hook.url("/"), "other": "hunter2", "unknown": "carrier://hunter2@pigeon", "logger": "logger://"})
	s.secret("two", map[string]string{"bearerToken": "a", "username": "u", "password": "p"})
	s.secret("ca", map[string]string{"ca.crt": "hunter2"})
	key := func(key string) v1alpha1.AlarmSpec {
		spec := shoutTo("hook")
		spec.Shoutrrr.SecretRef.Key = key
		return spec
	}
	manager := func(secret string) v1alpha1.AlarmSpec {
		return v1alpha1.AlarmSpec{Alertmanager: &v1alpha1.AlertmanagerReceiver{URL: "https://127.0.0.1:1", SecretRef: &v1alpha1.LocalReference{Name: secret}}}
	}
	beyond, template := shoutTo("hook"), shoutTo("hook")
	beyond.Namespaces = []string{"*"}
	template.Template = &v1alpha1.AlarmTemplate{Title: "{{.Nothing}}", Text: "mended: {{(index .Firing 0).Names}}"}
	d, _ := s.agent()
	for name, c := range map[string]struct {
		spec   v1alpha1.AlarmSpec
		reason string
		says   string
	}{
		"no-secret":   {shoutTo("nowhere"), "InvalidSecret", "/nowhere: it does not exist"},
		"no-key":      {key("nothing"), "InvalidSecret", "no address under the key nothing"},
		"no-address":  {key("other"), "InvalidSecret", "no service before ://"},
		"unknown":     {key("unknown"), "InvalidSecret", "unknown service"},
		"logger":      {key("logger"), "InvalidSecret", "logger is not supported"},
		"two-ways":    {manager("two"), "InvalidSecret", "both a bearerToken and a password"},
		"no-ca":       {manager("ca"), "InvalidSecret", "ca.crt holds no certificate"},
		"not-allowed": {beyond, "NotAllowed", "--alarms-across=" + s.ns},
		"template":    {template, "InvalidTemplate", "spec.template.title"},
	} {
		s.alarm(name, c.spec)
		status := s.until(name, "says what is wrong", ready(c.reason))
		if m := status.Conditions[0].Message; !strings.Contains(m, c.says) || strings.Contains(m, "hunter2") {
			t.Errorf("%s: %s", name, m)
		}
	}
	// The one with a wrong title speaks all the same, and the one without a Secret as soon as there is one.
	d.Passed(mooring(s.ns+"/prod", failed, denied), report.Outcome{}, nil)
	s.until("template", "told", sent(1))
	if got := hook.got(); len(got) != 1 || !strings.Contains(got[0], "mended: "+s.ns+"/prod") || !strings.Contains(got[0], "failed (ApplyFailed)") {
		t.Errorf("messages %v", got)
	}
	s.secret("nowhere", map[string]string{"urls": hook.url("/late")})
	s.until("no-secret", "told", sent(1))
}

// TestFirstAlarm knows what became of Moorings before it, when nobody listened.
func TestFirstAlarm(t *testing.T) {
	s, hook := newSite(t), newWebhook(t)
	s.secret("hook", map[string]string{"urls": hook.url("/")})
	d, _ := s.agent()
	d.Passed(s.mooring("shop", failed, denied), report.Outcome{}, nil)
	s.alarm("hook", shoutTo("hook"))
	s.until("hook", "told", sent(1))
}

// TestStalledReceiver has a receiver that never answers. Whoever tells of a pass is not kept waiting, and other Alarms speak.
func TestStalledReceiver(t *testing.T) {
	s, hook := newSite(t), newWebhook(t)
	asked, over := make(chan struct{}, 100), make(chan struct{})
	stalled := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}))
	t.Cleanup(stalled.Close)
	t.Cleanup(func() { close(over) })
	s.secret("hook", map[string]string{"urls": hook.url("/")})
	s.secret("stalled", map[string]string{"urls": "generic+" + stalled.URL})
	s.alarm("hook", shoutTo("hook"))
	s.alarm("stalled", shoutTo("stalled"))
	d, _ := s.agent()
	d.Passed(mooring(s.ns+"/prod", failed, denied), report.Outcome{}, nil)
	<-asked
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 10_000 { // while the receiver has not answered
			d.Passed(mooring(fmt.Sprintf("%s/m%d", s.ns, i%100), failed, denied), report.Outcome{}, nil)
		}
	}()
	select {
	case <-told:
	case <-time.After(10 * time.Second):
		t.Fatal("telling of 10,000 passes waits for a receiver that does not answer")
	}
	s.until("hook", "told", sent(1))
	status := s.until("stalled", "gives up for now", func(s v1alpha1.AlarmStatus) bool { return s.Failed > 0 })
	if !strings.Contains(status.LastError, "no answer within") {
		t.Errorf("last error: %s", status.LastError)
	}
}
