package render_test

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

// A field that is called otherwise in the model would be a reference that nobody follows.
func TestLinkedFieldsExist(t *testing.T) {
	text, err := os.ReadFile("app/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	root := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if len(render.ApplicationLinks()) < 20 {
		t.Errorf("there are only %d", len(render.ApplicationLinks()))
	}
	for _, path := range render.ApplicationLinks() {
		at := &root
		for _, step := range path {
			if step == "[]" {
				if at.Items == nil {
					t.Fatalf("%s of an AppConfiguration is no list", strings.Join(path, "."))
				}
				at = at.Items.Schema
				continue
			}
			next, ok := at.Properties[step]
			if !ok && step != "targetRef" { // of every block, also of those that have none
				t.Errorf("an AppConfiguration has no %s", strings.Join(path, "."))
			}
			if !ok {
				break
			}
			at = &next
		}
	}
}
