package render

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

//go:generate go test -run ^TestSchemaIsCurrent$ -update .

// ownSchema is what kustomize has to know of AppConfiguration: which of its lists are merged by which key. kustomize replaces the lists of a kind whose
// schema it does not know, so an overlay would have to repeat all routes to change one. It is made from the CustomResourceDefinition.
//
//go:embed schema/appconfiguration.json
var ownSchema string

// schemas makes builds side by side add the schema once. It is a variable of the package for the same reason as builds.
var schemas sync.Mutex

// loadSchema loads kustomize's schema and ours, so that builds side by side only read it. Whoever builds calls it first.
func loadSchema() error {
	schemas.Lock()
	defer schemas.Unlock()
	if openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: mooringAPI + "/v1alpha1", Kind: "AppConfiguration"}) != nil {
		return nil
	}
	return addSchema()
}

// addSchema adds our schema to one that is not loaded yet. A definition of the same kind that comes with a kustomization takes its place.
func addSchema() error {
	if err := openapi.AddSchema([]byte(ownSchema)); err != nil {
		return fmt.Errorf("add the schema of AppConfiguration: %w", err)
	}
	return nil
}
