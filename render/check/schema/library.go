package schema

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"istio.io/istio/manifests"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Library holds objects of Istio's kinds against Istio's definitions.
type Library struct {
	// versions are how each kind and version is compiled, once.
	versions func() (map[schema.GroupVersionKind]func() (*version, error), error)
}

// istio is what all libraries of a process share: the definitions never change, and what was compiled serves again.
var istio = sync.OnceValues(readIstio)

// New makes a Library. Nothing is read before the first object comes.
func New() *Library {
	return &Library{versions: istio}
}

// Check says what the API server would refuse of the object; nothing of a kind or version that Istio does not define.
func (l *Library) Check(ctx context.Context, o *unstructured.Unstructured) ([]Fault, error) {
	versions, err := l.versions()
	if err != nil {
		return nil, err
	}
	compile := versions[o.GroupVersionKind()]
	if compile == nil {
		return nil, nil
	}
	v, err := compile()
	if err != nil {
		return nil, err
	}
	return v.check(ctx, o.Object)
}

// Kinds are the kinds and versions that Istio defines, in no order.
func (l *Library) Kinds() ([]schema.GroupVersionKind, error) {
	versions, err := l.versions()
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for gvk := range versions {
		kinds = append(kinds, gvk)
	}
	return kinds, nil
}

// readIstio finds the versions in the text of Istio's definitions.
func readIstio() (map[schema.GroupVersionKind]func() (*version, error), error) {
	data, err := fs.ReadFile(manifests.FS, "charts/base/files/crd-all.gen.yaml")
	if err != nil {
		return nil, fmt.Errorf("read Istio's definitions: %w", err)
	}
	all := map[schema.GroupVersionKind]func() (*version, error){}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		for gvk, text := range cut(document) {
			all[gvk] = sync.OnceValues(func() (*version, error) { return parse(gvk, text) })
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read Istio's definitions: none found")
	}
	return all, nil
}

// What a definition says of itself at its fixed places. controller-gen writes all of them alike.
var (
	groupLine   = regexp.MustCompile(`(?m)^  group: (\S+)$`)
	kindLine    = regexp.MustCompile(`(?m)^    kind: (\S+)$`)
	versionLine = regexp.MustCompile(`(?m)^(?:  - |    )name: (\S+)$`)
)

// cut gives the text of each version of a definition, an item of the list spec.versions.
func cut(document string) map[schema.GroupVersionKind]string {
	group, kind := groupLine.FindStringSubmatch(document), kindLine.FindStringSubmatch(document)
	_, list, ok := strings.Cut(document, "\n  versions:\n")
	if group == nil || kind == nil || !ok {
		return nil
	}
	texts := map[schema.GroupVersionKind]string{}
	for i, item := range strings.Split("\n"+list, "\n  - ") {
		if i == 0 {
			continue
		}
		item = "  - " + item
		if name := versionLine.FindStringSubmatch(item); name != nil {
			texts[schema.GroupVersionKind{Group: group[1], Version: name[1], Kind: kind[1]}] = item
		}
	}
	return texts
}

func parse(gvk schema.GroupVersionKind, text string) (*version, error) {
	var versions []apiextensionsv1.CustomResourceDefinitionVersion
	if err := yaml.Unmarshal([]byte(text), &versions); err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", gvk, err)
	}
	if len(versions) != 1 || versions[0].Schema == nil {
		return nil, fmt.Errorf("read the definition of %s: it has no schema", gvk)
	}
	v, err := compile(versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", gvk, err)
	}
	return v, nil
}
