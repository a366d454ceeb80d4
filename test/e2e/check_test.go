package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// routeTo is a VirtualService for a host of its own that leads to a Service, and to a subset of it where one is named.
func routeTo(name, host, subset string) string {
	if subset != "" {
		subset = ", subset: " + subset
	}
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: NS}
spec:
  hosts: [%[1]s.NS.example]
  http:
  - route:
    - destination: {host: %s.NS.svc.cluster.local%s}
`, name, host, subset)
}

func subsets(host string, names ...string) string {
	text := fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: %[1]s, namespace: NS}\nspec:\n  host: %[1]s.NS.svc.cluster.local\n  subsets:\n", host)
	for _, name := range names {
		text += fmt.Sprintf("  - {name: %[1]s, labels: {version: %[1]s}}\n", name)
	}
	return text
}

// workload is a version of an application: what a subset selects.
func workload(app, version string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s-%[2]s, namespace: NS}
spec:
  selector: {matchLabels: {app: %[1]s, version: %[2]s}}
  template:
    metadata: {labels: {app: %[1]s, version: %[2]s}}
    spec: {containers: [{name: main, image: "%[1]s:%[2]s"}]}
`, app, version)
}

func (u *unit) finding(m *mooring, code string) v1alpha1.FindingEntry {
	u.t.Helper()
	for _, f := range m.Status.Findings {
		if f.Code == code {
			return f
		}
	}
	u.t.Fatalf("no finding %s in %+v", code, m.Status.Findings)
	return v1alpha1.FindingEntry{}
}

func TestCommitThatNamesAMissingSubsetIsRefused(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"svc.yaml": service("reviews"), "v1.yaml": workload("reviews", "v1"), "v2.yaml": workload("reviews", "v2"), "rule.yaml": subsets("reviews", "v1"), "route.yaml": routeTo("shop", "reviews", "v1")})
	u := s.mooring("prod", nil)
	good := s.head()
	u.inForce(good)
	before := s.versions()

	s.commit(files{"route.yaml": routeTo("shop", "reviews", "v2")})
	m := u.sync()
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "route.yaml:", "IST0101", "VirtualService/"+s.ns+"/shop", "v2", good+" stays in force")
	if f := u.finding(m, "IST0101"); f.Level != "Error" || f.File != "route.yaml:8" || m.Status.BlockingCount != 1 {
		t.Errorf("the finding is %+v; %d block", f, m.Status.BlockingCount)
	}
	u.sync()
	u.event(v1alpha1.ReasonCheckFailed, "route.yaml:8")
	s.untouched(before)

	second := s.commit(files{"rule.yaml": subsets("reviews", "v1", "v2")})
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied, second)
}

func TestHostThatLivesInTheClusterAlone(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"route.yaml": routeTo("shop", "reviews", "")})
	s.apply("another-team", strings.ReplaceAll(service("reviews"), "NS", s.ns))
	u := s.mooring("prod", every(2*time.Second))
	m := u.inForce(s.head())
	if m.Status.BlockingCount != 0 {
		t.Errorf("findings are %+v", m.Status.Findings)
	}

	// One that is missing is refused, told once, and accepted by itself when it is there.
	second := s.commit(files{"more.yaml": routeTo("more", "ratings", "")})
	u.until("the commit is refused", world.HasReason(v1alpha1.ReasonCheckFailed))
	passes(t, w.agent, 2, u)
	u.event(v1alpha1.ReasonCheckFailed, "more.yaml:8", "ratings")
	renders := observed(scrape(t, w.agent), "render", u)
	s.apply("another-team", strings.ReplaceAll(service("ratings"), "NS", s.ns))
	u.inForce(second)
	if is := observed(scrape(t, w.agent), "render", u); is != renders {
		t.Errorf("rendered %v times more, want the remembered render", is-renders)
	}
}

func TestWhatTheMeshHasAlreadyDoesNotBlock(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(some("a=1"), files{"route.yaml": routeTo("shop", "nowhere", "")}))
	s.apply("somebody", strings.ReplaceAll(routeTo("shop", "nowhere", ""), "NS", s.ns))
	s.apply("another-team", strings.ReplaceAll(routeTo("theirs", "lost", ""), "NS", s.ns))
	m := s.mooring("prod", nil).inForce(s.head())
	if m.Status.BlockingCount != 0 {
		t.Errorf("%d findings block: %+v", m.Status.BlockingCount, m.Status.Findings)
	}
	known := false
	for _, f := range m.Status.Findings {
		known = known || f.Code == "IST0101" && f.Known && strings.Contains(f.Object, "/shop")
		if strings.Contains(f.Object, "theirs") {
			t.Errorf("another team's old fault is told: %+v", f)
		}
	}
	if !known {
		t.Errorf("the known fault is not told: %+v", m.Status.Findings)
	}
}

func TestSpecCheckSaysWhatBlocks(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"route.yaml": routeTo("shop", "nowhere", "")})
	u := s.mooring("prod", nil)
	u.until("the commit is refused", world.HasReason(v1alpha1.ReasonCheckFailed))

	// The spec lets it through, without another commit.
	u.edit(func(m *mooring) {
		m.Spec.Check = &v1alpha1.Check{Suppress: []v1alpha1.Suppression{{Code: "IST0101", Resource: "VirtualService/" + s.ns + "/*"}}}
	})
	m := u.inForce(s.head())
	if f := u.finding(m, "IST0101"); f.Suppressed == "" {
		t.Errorf("the finding is %+v", f)
	}

	// So does the object, with its reason; the code is ignored elsewhere.
	annotated := strings.Replace(routeTo("more", "lost", ""), "namespace: NS", `namespace: NS, annotations: {mooring.dev/suppress: "IST0101: comes in May"}`, 1)
	u.edit(func(m *mooring) { m.Spec.Check = nil })
	second := s.commit(files{"more.yaml": annotated})
	u.sync()
	m = u.inForce(second)
	if !strings.Contains(fmt.Sprint(m.Status.Findings), "comes in May") {
		t.Errorf("the reason is not told: %+v", m.Status.Findings)
	}
	third := s.commit(files{"third.yaml": routeTo("third", "gone", "")})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "third.yaml:8")
	u.edit(func(m *mooring) { m.Spec.Check = &v1alpha1.Check{Ignore: []v1alpha1.CheckCode{"IST0101"}} })
	u.inForce(third)

	// A Warning blocks where that is asked for: an acceptance without a reason accepts nothing.
	s.commit(files{"cm.yaml": strings.Replace(configMap("a", "1"), "namespace: NS", `namespace: NS, annotations: {mooring.dev/suppress: "MOOR012"}`, 1)})
	u.edit(func(m *mooring) {
		m.Spec.Check = &v1alpha1.Check{FailOn: v1alpha1.CheckWarning, Ignore: []v1alpha1.CheckCode{"IST0101"}}
	})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "cm.yaml:", "MOOR018")
}

const filter = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patch, namespace: NS}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND}
    patch: {operation: MERGE, value: {connect_timeout: 1s}}
`

func noFilters(code string) string {
	return `apiVersion: mooring.dev/v1alpha1
kind: CheckPolicy
metadata: {name: no-envoyfilter}
spec:
  code: ` + code + `
  match: {groups: [networking.istio.io], kinds: [EnvoyFilter]}
  validations: [{expression: "false", message: "EnvoyFilters are for the platform team"}]
`
}

func TestPoliciesOfTheHouse(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("prod", some("a=1")), files{"policies/filters.yaml": noFilters("REPO1")}))
	house := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "house"}, Data: map[string]string{"filters.yaml": noFilters("HOUSE1")}}
	u := s.mooring("prod", func(m *mooring) {
		m.Spec.Path = "prod"
		m.Spec.Check = &v1alpha1.Check{Policies: []v1alpha1.PolicySource{
			{Path: "policies"}, {ConfigMapRef: &v1alpha1.ConfigMapReference{Name: "house"}},
		}}
	})
	u.until("the ConfigMap is missed", func(m *mooring) error {
		if got := world.Ready(m).Message; !strings.Contains(got, "ConfigMap "+s.ns+"/house: it does not exist") {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	if err := w.Client().Create(t.Context(), house); err != nil {
		t.Fatal(err)
	}
	u.inForce(s.head())
	good := s.head()
	s.commit(files{"prod/filter.yaml": filter})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "prod/filter.yaml:", "REPO1", "HOUSE1", "EnvoyFilters are for the platform team", good)

	// A policy that does not compile says where.
	s.commit(files{"prod/filter.yaml": "", "policies/filters.yaml": strings.Replace(noFilters("REPO1"), `"false"`, `"object.("`, 1)})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "policies/filters.yaml")
	mended := s.commit(files{"policies/filters.yaml": noFilters("REPO1")})
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied, mended)
}
