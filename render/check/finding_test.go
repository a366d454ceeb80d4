package check_test

import (
	"testing"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

func TestFindingString(t *testing.T) {
	route := render.ID{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
	for _, tt := range []struct {
		name    string
		finding check.Finding
		want    string
	}{
		{
			"whole",
			check.Finding{
				Code: "MOOR002", Level: check.Error, Object: route,
				Origin:  render.Origin{File: "overlays/prod/route.yaml", Line: 12},
				Field:   "spec.http[0].route[0].weighting",
				Message: "unknown field", Mend: "did you mean weight?",
			},
			"overlays/prod/route.yaml:12: error MOOR002 VirtualService/shop/web: " +
				"spec.http[0].route[0].weighting: unknown field; did you mean weight?",
		},
		{
			"unknown line",
			check.Finding{Code: "IST0133", Level: check.Warning, Object: route, Origin: render.Origin{File: "a.yaml"}, Message: "old"},
			"a.yaml: warning IST0133 VirtualService/shop/web: old",
		},
		{
			"unknown origin, and a message of several lines",
			check.Finding{Code: "IST0106", Level: check.Info, Object: render.ID{Kind: "Namespace", Name: "shop"}, Message: "one\n\ttwo"},
			"info IST0106 Namespace/shop: one two",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.finding.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	order := []check.Level{check.Info, check.Warning, check.Error, check.Level("Unheard")}
	for i, a := range order {
		for j, b := range order {
			if got := a.AtLeast(b); got != (i >= j) {
				t.Errorf("%s at least %s: %t", a, b, got)
			}
		}
		if got := check.Blocks([]check.Finding{{Level: check.Info}, {Level: a}}); got != (i >= 2) {
			t.Errorf("a finding of level %s blocks: %t", a, got)
		}
	}
	if check.Blocks(nil) {
		t.Error("nothing blocks")
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range check.Rules() {
		if seen[r.Code] {
			t.Errorf("%s is there twice", r.Code)
		}
		seen[r.Code] = true
		if r.Title == "" || r.Mend == "" || !check.Error.AtLeast(r.Level) {
			t.Errorf("%s lacks a title, a mend or a known level: %+v", r.Code, r)
		}
	}
}
