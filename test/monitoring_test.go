package test_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/alarm"
	"github.com/mooring-dev/mooring/sync/report"
)

// register notes the names of what is registered.
type register struct {
	prometheus.Registerer
	names []string
}

// MustRegister asks each collector how its metrics are called.
func (r *register) MustRegister(all ...prometheus.Collector) {
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for _, c := range all {
		descriptions := make(chan *prometheus.Desc, 100)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			r.names = append(r.names, name.FindStringSubmatch(d.String())[1])
		}
	}
}

// metricNames are all that the agent registers.
func metricNames(t *testing.T) []string {
	t.Helper()
	r := &register{}
	report.NewMetrics(r)
	alarm.NewMetrics(r)
	if len(r.names) < 15 {
		t.Fatalf("only these metrics are registered: %v", r.names)
	}
	return r.names
}

// monitoring reads a file of deploy/monitoring.
func monitoring(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root(t), "deploy", "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// unknownMetrics are the names of Mooring's in a text that no metric has.
func unknownMetrics(known []string, text string) []string {
	unknown := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bmooring_[a-z0-9_]+`).FindAllString(text, -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if !slices.Contains(known, name) && !slices.Contains(known, base) {
			unknown[name] = true
		}
	}
	return slices.Sorted(maps.Keys(unknown))
}

// Rules and dashboard ask for nothing that the agent does not have.
func TestMetricsOfRulesAndDashboardExist(t *testing.T) {
	known := metricNames(t)
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		if unknown := unknownMetrics(known, string(monitoring(t, file))); len(unknown) > 0 {
			t.Errorf("%s names %v, which the agent does not have", file, unknown)
		}
	}
	got := unknownMetrics(known, "rate(mooring_passes_total[5m]) / mooring_passes + mooring_stage_duration_seconds_bucket")
	if !slices.Equal(got, []string{"mooring_passes"}) {
		t.Errorf("the test itself finds %v", got)
	}
}

// alertTests is what this file reads of promtool's format.
type alertTests struct {
	Tests []struct {
		Alerts []struct {
			Name     string           `json:"alertname"`
			Expected []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func TestAlertRules(t *testing.T) {
	var object struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(monitoring(t, "rules.yaml"), &object); err != nil && len(object.Spec.Groups) == 0 {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(object.Spec) // what the operator gives to Prometheus
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": rules, "alerts.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "rules.yaml"}, {"test", "rules", "alerts.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	var covered alertTests
	if err := yaml.Unmarshal(tests, &covered); err != nil {
		t.Fatal(err)
	}
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, test := range covered.Tests {
		for _, a := range test.Alerts {
			fires[a.Name] = fires[a.Name] || len(a.Expected) > 0
			rests[a.Name] = rests[a.Name] || len(a.Expected) == 0
		}
	}
	for _, rule := range object.Spec.Groups[0].Rules {
		name, _ := rule["alert"].(string)
		if !fires[name] || !rests[name] {
			t.Errorf("%s: a test shows it fire: %t, and not fire: %t", name, fires[name], rests[name])
		}
	}
}

// The dashboard is what Grafana reads, and each panel shows something of Prometheus that parses.
func TestDashboard(t *testing.T) {
	var board struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal(monitoring(t, "dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q: its id is not its own, or it has no title or shows nothing", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			rules = append(rules, rule{"panel", strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(target.Expr)})
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					t.Fatalf("panels %q and %q lie over each other", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(rules) < 10 || board.UID == "" {
		t.Fatalf("%d queries in %q", len(rules), board.Title)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	content, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "--lint", "none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

// kubectl apply -k deploy/monitoring applies what belongs together: the Service that deploy makes, and the dashboard in the ConfigMap.
func TestMonitoringFitsTogether(t *testing.T) {
	set, err := sync.NewRenderer().Render(t.Context(), os.DirFS(root(t)), "deploy/monitoring")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, o := range set.Objects {
		ids = append(ids, o.ID().String())
	}
	want := []string{"ConfigMap/mooring-system/mooring-dashboard", "PrometheusRule/mooring-system/mooring", "ServiceMonitor/mooring-system/mooring"}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		t.Errorf("it applies %v, want %v", ids, want)
	}
	var monitor struct {
		Spec struct {
			Selector  struct{ MatchLabels map[string]string }
			Endpoints []struct{ Port string }
		}
	}
	if err := yaml.Unmarshal(monitoring(t, "service-monitor.yaml"), &monitor); err != nil {
		t.Fatal(err)
	}
	for _, o := range deploySet(t).Objects {
		if o.GetKind() != "Service" {
			continue
		}
		for k, v := range monitor.Spec.Selector.MatchLabels {
			if o.GetLabels()[k] != v {
				t.Errorf("%s lacks the label %s=%s", o.ID(), k, v)
			}
		}
		if text, _ := json.Marshal(o.Unstructured().Object); !strings.Contains(string(text), `"name":"`+monitor.Spec.Endpoints[0].Port+`"`) {
			t.Errorf("%s has no port %s", o.ID(), monitor.Spec.Endpoints[0].Port)
		}
	}
}
