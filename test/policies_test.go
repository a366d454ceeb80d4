package test_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/sync"
)

// policiesFolder is the folder of examples that is no repository of a mesh: nothing in it is rendered.
const policiesFolder = "policies"

// offences are objects of a bad day: each breaks the policy with that code, and no other.
var offences = map[string]string{
	"HOUSE001": `{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: lua, namespace: shop, labels: {team: web}}, spec: {}}`,
	"HOUSE002": `{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: public, namespace: edge}, spec: {servers: [{hosts: [storefront/*], port: {number: 80, name: http, protocol: HTTP}}]}}`,
	"HOUSE003": `{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: cart, namespace: shop}, spec: {hosts: [cart], http: [{redirect: {uri: /}}, {route: [{destination: {host: cart}}]}]}}`,
	"HOUSE004": `{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: mail, namespace: shop}, spec: {hosts: [mail.example.net], resolution: DNS}}`,
}

// findingsOf are the findings of these policies alone.
func findingsOf(t *testing.T, policies []*policy.Policy, set *render.Set, mooring string) []check.Finding {
	t.Helper()
	report, err := check.New().Check(t.Context(), check.Request{Set: set, Policies: policies, Mooring: map[string]any{"name": mooring}})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(report.Findings, func(f check.Finding) bool {
		return f.Code != "MOOR019" && !slices.ContainsFunc(policies, func(p *policy.Policy) bool { return p.Code == f.Code })
	})
}

func examplePolicies(t *testing.T) []*policy.Policy {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "examples", policiesFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*policy.Policy
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		more, err := policy.Parse(filepath.Base(file), content)
		if err != nil {
			t.Error(err)
		}
		all = append(all, more...)
	}
	if len(all) != len(offences) {
		t.Fatalf("%d policies in %d files, and %d offences", len(all), len(files), len(offences))
	}
	return all
}

// Each example of a policy finds what it is for, and nothing in a repository that is in order.
func TestExamplePolicies(t *testing.T) {
	policies, renderer := examplePolicies(t), sync.NewRenderer()
	for code, object := range offences {
		set, err := renderer.Render(t.Context(), fstest.MapFS{"bad.yaml": {Data: []byte(object)}}, ".")
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		var got []string
		for _, f := range findingsOf(t, policies, set, "shop-prod") {
			got = append(got, f.Code)
		}
		if diff := gocmp.Diff([]string{code}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
		if code != "HOUSE001" {
			continue
		}
		if found := findingsOf(t, policies, set, "shop-staging"); len(found) != 0 {
			t.Errorf("outside of production: %v", found)
		}
	}
	for _, folder := range []string{"overlays/staging", "overlays/prod"} {
		set, err := renderer.Render(t.Context(), os.DirFS(filepath.Join(root(t), "examples", "teams")), folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findingsOf(t, policies, set, "teams-"+path.Base(folder)) {
			t.Errorf("teams: %s", f)
		}
	}
}

// A repository of several teams that is in order is not spoken of: every level above Info would be a false alarm.
func TestTeamsHaveNoFindings(t *testing.T) {
	for _, folder := range []string{"overlays/staging", "overlays/prod"} {
		set, err := sync.NewRenderer().Render(t.Context(), os.DirFS(filepath.Join(root(t), "examples", "teams")), folder)
		if err != nil {
			t.Fatal(err)
		}
		report, err := check.New().Check(t.Context(), check.Request{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			t.Errorf("%s: %s", folder, f)
		}
	}
}
