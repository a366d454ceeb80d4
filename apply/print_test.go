package apply_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
)

func TestPrint(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(mesh + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone, namespace: $NS}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, namespace: $NS, annotations: {mooring.dev/prune: disabled}}\n")
	f.edit("virtualservice", "reviews", `{"spec":{"exportTo":["."]}}`)
	f.policy.MaxPercent = 10
	p := f.plan(strings.Replace(mesh, "k: one", "k: two", 1) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n")
	const want = `configuration:
  ~ ConfigMap/$NS/a (git.yaml:19)
      /data/k: "one" → "two"
  + Secret/$NS/s (git.yaml:25)
routes:
  ~ VirtualService/$NS/reviews (git.yaml:1): takes over fields of kubectl-edit
      /spec/exportTo: ["."] → (none) (set by kubectl-edit (Update, $TIME))
prune:
  · ConfigMap/$NS/kept: mooring.dev/prune: disabled
  - ConfigMap/$NS/gone
1 to create, 2 to update, 1 to delete, 1 unchanged, 1 skipped
held by the guard (Limit): 1 of 5 objects would be deleted, which is over 10 percent (spec.prune.maxPercent): ConfigMap/$NS/gone. To go on: confirm the plan, or bring the objects back in Git, or annotate the live objects that shall stay with mooring.dev/prune=disabled.
`
	got := regexp.MustCompile(`Update, [0-9TZ:-]+`).ReplaceAllString(strings.ReplaceAll(p.String(), f.ns, "$NS"), "Update, $$TIME")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	var styled strings.Builder
	if err := p.Print(&styled, func(a apply.Action, line string) string { return string(a) + "|" + line }); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(styled.String(), "|configuration:\nupdate|  ~ ConfigMap") {
		t.Errorf("styled:\n%s", styled.String())
	}
}
