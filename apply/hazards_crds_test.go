package apply_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/apply"
)

// second is a further version of the test's kind.
const second = `  - name: v2
    served: true
    storage: STORAGE
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// A version in which objects may be stored cannot be dropped, and the plan says so, and what to do, before anything is written.
func TestStoredVersionIsNotDropped(t *testing.T) {
	f := newFixture(t)
	f.sync(widgetDefinition + "---\n" + widget)
	t.Cleanup(f.dropWidgets)
	// From now on objects are stored in v2; the one that is there is still in v1.
	both := strings.Replace(widgetDefinition, "storage: true", "storage: false", 1) + strings.Replace(second, "STORAGE", "true", 1)
	f.sync(both + "---\n" + widget)
	begin, end := strings.Index(both, "  - name: v1"), strings.Index(both, "  - name: v2")
	only := both[:begin] + both[end:]
	inV2 := strings.Replace(widget, "mooring.dev/v1", "mooring.dev/v2", 1)

	err := f.refuse(only + "---\n" + inV2 + "---\n" + oneMap)
	faults := apply.ObjectErrors(err)
	if len(faults) != 1 || faults[0].ID.Kind != "CustomResourceDefinition" || faults[0].Origin.File != "git.yaml" {
		t.Fatalf("faults: %v", err)
	}
	for _, words := range []string{"version v1", "may still be stored", "status.storedVersions", "kubectl get widgets." + f.ns + ".test.mooring.dev -A"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("the error lacks %q: %v", words, err)
		}
	}
	f.gone("", "v1", "configmaps", "a")

	// As it says: each object once, then the status, then it may go.
	crd := "widgets." + f.ns + ".test.mooring.dev"
	f.kubectl("annotate", crd, "w", "note=written")
	f.kubectl("patch", "crd", crd, "--subresource=status", "--type=merge", "-p", `{"status":{"storedVersions":["v2"]}}`)
	f.sync(only + "---\n" + inV2)
	f.settled(only + "---\n" + inV2)
}

// Git has an older definition than the cluster: an upgrade of Istio by other means, say. To apply it would take from everybody the version that it lacks.
func TestDefinitionIsNotDowngraded(t *testing.T) {
	newer := widgetDefinition + strings.Replace(second, "STORAGE", "false", 1)
	for name, lives := range map[string]func(f *fixture){
		"somebody else's": func(f *fixture) {
			f.kubectl("apply", "--server-side", "--field-manager=istioctl", "-f", f.write(newer))
		},
		"our own": func(f *fixture) { f.sync(newer) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			lives(f)
			t.Cleanup(f.dropWidgets)
			err := f.refuse(widgetDefinition)
			for _, words := range []string{"version v2", "newer than all in Git (v1)", "served: false", "git.yaml:1"} {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("the error lacks %q: %v", words, err)
				}
			}
			if served := f.kubectl("get", "crd", "widgets."+f.ns+".test.mooring.dev", "-o", "jsonpath={.spec.versions[*].name}"); served != "v1 v2" {
				t.Fatalf("versions: %s", served)
			}
			// Who means it says so.
			f.sync(strings.Replace(newer, "name: v2\n    served: true", "name: v2\n    served: false", 1))
			f.sync(widgetDefinition)
			f.settled(widgetDefinition)
		})
	}
	t.Run("an old version is retired", func(t *testing.T) {
		f := newFixture(t)
		both := strings.Replace(widgetDefinition, "storage: true", "storage: false", 1) + strings.Replace(second, "STORAGE", "true", 1)
		f.sync(both)
		t.Cleanup(f.dropWidgets)
		begin, end := strings.Index(both, "  - name: v1"), strings.Index(both, "  - name: v2")
		f.sync(both[:begin] + both[end:])
	})
}
