package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/kube"
)

// TestAlarms has what the API server takes, and what it refuses with which words.
func TestAlarms(t *testing.T) {
	cluster := kube.Start(t)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	alarms := client.Resource(v1alpha1.GroupVersion.WithResource("alarms")).Namespace(cluster.Namespace(t))
	const shout, manager = `shoutrrr: {secretRef: {name: chat}}`, `alertmanager: {url: "http://alertmanager.monitoring:9093"}`
	for name, c := range map[string]struct{ spec, want string }{
		"chat":         {shout, ""},
		"alertmanager": {manager, ""},
		"every field": {shout + `, moorings: [{name: prod}, {labelSelector: {matchLabels: {a: b}}}], namespaces: [shop, "*"],
			events: [drift, driftCorrected, failed, guarded, recovered, applied, fight, unmanaged, promotion], template: {title: "{{.Title}}", text: "{{.Text}}"},
			groupWait: 2m, groupInterval: 1h, suspend: true`, ""},
		"every field of alertmanager": {`alertmanager: {url: "https://a.example.com/prefix", secretRef: {name: b}, labels: {cluster: prod}}`, ""},
		"nowhere":                     {`suspend: false`, "exactly one of shoutrrr and alertmanager must be set"},
		"two receivers":               {shout + ", " + manager, "exactly one of shoutrrr and alertmanager must be set"},
		"an address in the spec":      {`shoutrrr: {url: "slack://x"}`, "unknown field"},
		"no event":                    {shout + ", events: []", "spec.events"},
		"unknown event":               {shout + ", events: [broken]", "Unsupported value"},
		"an event twice":              {shout + ", events: [drift, drift]", "Duplicate value"},
		"name and selector":           {shout + ", moorings: [{name: a, labelSelector: {}}]", "exactly one of name and labelSelector must be set"},
		"no selector":                 {shout + ", moorings: [{}]", "exactly one of name and labelSelector must be set"},
		"a pattern of namespaces":     {shout + ", namespaces: ['shop-*']", "spec.namespaces[0]"},
		"credentials in the url":      {`alertmanager: {url: "https://u:p@a"}`, "credentials belong into the Secret"},
		"a query in the url":          {`alertmanager: {url: "https://a/?token=x"}`, "url is http://host:port"},
		"another scheme":              {`alertmanager: {url: "ftp://a"}`, "url is http://host:port"},
		"credentials over http":       {`alertmanager: {url: "http://a", secretRef: {name: b}}`, "credentials are never sent over http"},
		"a label of ours":             {`alertmanager: {url: "http://a", labels: {alertname: x}}`, "are set by Mooring"},
		"a label with a dot":          {`alertmanager: {url: "http://a", labels: {a.b: x}}`, "a label is named by letters"},
		"groupWait in days":           {shout + ", groupWait: 1d", "groupWait is a duration"},
		"groupWait of nothing":        {shout + ", groupWait: 0s", "groupWait is a duration"},
		"groupInterval too long":      {shout + ", groupInterval: 25h", "groupInterval is a duration"},
		"a novel":                     {shout + ", template: {text: " + strings.Repeat("a", 4097) + "}", "Too long"},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": parse(t, "{"+c.spec+"}")}}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AlarmKind))
		u.SetGenerateName("a-")
		got, err := alarms.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		case name == "chat":
			events, _, _ := unstructured.NestedStringSlice(got.Object, "spec", "events")
			wait, _, _ := unstructured.NestedString(got.Object, "spec", "groupWait")
			key, _, _ := unstructured.NestedString(got.Object, "spec", "shoutrrr", "secretRef", "key")
			if strings.Join(events, " ") != "drift failed guarded fight recovered" || wait != "10s" || key != "urls" {
				t.Errorf("defaults: %v %s %s", events, wait, key)
			}
		}
	}
	out, err := cluster.Kubectl(t.Context(), "explain", "alarm.spec.shoutrrr.secretRef")
	if err != nil || !strings.Contains(out, "one a line") {
		t.Errorf("kubectl explain: %v\n%s", err, out)
	}
}
