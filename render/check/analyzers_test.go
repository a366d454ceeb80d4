package check_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"istio.io/istio/pkg/config/analysis/msg"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/analysis"
	"github.com/mooring-dev/mooring/render/check/world"
)

// TestAnalyzerRules compares the rules with what the analyzers can report: each code has a rule of Istio's level, and no rule is left over.
func TestAnalyzerRules(t *testing.T) {
	rules := map[string]check.Rule{}
	for _, r := range check.Rules() {
		if strings.HasPrefix(r.Code, "IST") && r.Code != "IST0106" && r.Code != "IST0133" {
			if rules[r.Code].Code != "" {
				t.Errorf("%s has two rules", r.Code)
			}
			rules[r.Code] = r
		}
	}
	levels := map[string]string{}
	for _, m := range msg.All() {
		levels[m.Code()] = m.Level().String()
	}
	come := map[string]bool{}
	for _, codes := range analysis.Codes() {
		for _, code := range codes {
			come[code] = true
			r, ok := rules[code]
			if !ok || r.Title == "" || r.Mend == "" || string(r.Level) != levels[code] {
				t.Errorf("%s, %s for Istio, has the rule %+v", code, levels[code], r)
			}
		}
	}
	for code := range rules {
		if !come[code] {
			t.Errorf("%s has a rule, and nothing reports it", code)
		}
	}
}

const catalog = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: catalog, namespace: shop}
spec:
  hosts: [catalog]
  http:
  - route:
    - destination:
        host: catalog
        subset: v2
`

// analyzed is what is said of files over what lives; living may be empty, and then nobody looked.
func analyzed(t *testing.T, files, living string) string {
	t.Helper()
	var lives *world.Cluster
	if living != "" {
		lives = cluster(t, txtar.File{Name: "cluster.yaml", Data: []byte(living)})
	}
	return lines(look(t, fstest.MapFS{"shop/shop.yaml": &fstest.MapFile{Data: []byte(files)}}, "shop", lives))
}

func TestAnalyzersKnowWhatTheyDoNotKnow(t *testing.T) {
	const (
		service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: catalog, namespace: shop}\nspec:\n  ports: [{name: http, port: 80}]\n"
		rule    = "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: catalog, namespace: shop}\nspec:\n  host: catalog\n  subsets:\n  - {name: v1, labels: {version: v1}}\n"
		pod     = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: catalog-1, namespace: shop, labels: {version: v1}}\n"
	)
	const (
		noSubset = `shop.yaml:11: error IST0101 VirtualService/shop/catalog: spec.http[0].route[0].destination.subset: Referenced host+subset in destinationrule not found: "catalog+v2"; correct the name, or add what it refers to in the same commit` + "\n"
		noHost   = `shop.yaml:10: error IST0101 VirtualService/shop/catalog: spec.http[0].route[0].destination.host: Referenced host not found: "catalog"; correct the name, or add what it refers to in the same commit` + "\n"
		unseen   = "not checked: IST0101: "
		why      = ": no cluster was asked, and the files have no such "
	)
	for _, tt := range []struct{ name, files, living, want string }{
		{"alone", catalog, "", unseen + "host catalog.shop.svc.cluster.local" + why + "Service\n" + unseen + "subset v2 of catalog.shop.svc.cluster.local" + why + "DestinationRule\n"},
		{"with its rule", catalog + service + rule, "", noSubset + "not checked: IST0173: subset v1 of DestinationRule/shop/catalog" + why + "Pod\n"},
		{"over a cluster that has the host", catalog, service + rule + pod, noSubset},
		{"over a cluster that has another", catalog, strings.ReplaceAll(service+rule+pod, "catalog", "orders"), noHost + noSubset},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, analyzed(t, tt.files, strings.TrimPrefix(tt.living, "---\n"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignFaultsDoNotBlock breaks what lives, by pruning what it needs, and looks at what lives already.
func TestForeignFaultsDoNotBlock(t *testing.T) {
	const files = "apiVersion: v1\nkind: Service\nmetadata: {name: orders, namespace: shop}\nspec:\n  ports: [{name: http, port: 80}]\n"
	q := check.Request{
		Set:     &render.Set{Objects: objects(t, "shop.yaml", []byte(files))},
		Cluster: &world.Cluster{},
	}
	for _, o := range objects(t, "cluster.yaml", []byte(strings.TrimPrefix(catalog, "\n"))) {
		q.Cluster.Objects = append(q.Cluster.Objects, o.Unstructured())
	}
	report, err := check.New().Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Findings) != 2 || check.Blocks(report.Findings) {
		t.Errorf("found:\n%s", lines(report))
	}
	for _, f := range report.Findings {
		if !f.Foreign || !f.Known || f.Code != "IST0101" {
			t.Errorf("%s: foreign %t, known %t", f, f.Foreign, f.Known)
		}
	}
}
