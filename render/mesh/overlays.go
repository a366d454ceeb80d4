package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"istio.io/istio/operator/pkg/tpath"
	"istio.io/istio/operator/pkg/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

// overlay is one item of k8s.overlays.
type overlay struct {
	kind, name string
	patches    []any
	at         []string
}

// vetOverlays refuses patches that cannot be done, whose errors Istio forgets, and warns of overlays that match no object, which it overlooks. input is changed.
func (i installation) vetOverlays(ctx context.Context, input map[string]any) ([]render.Warning, error) {
	overlays := takeOverlays(input)
	if len(overlays) == 0 {
		return nil, nil
	}
	if !slices.ContainsFunc(overlays, func(o overlay) bool { return o.at[2] == "base" }) {
		// The base is most of the work, for its CRDs, and an overlay changes nothing but its own component.
		if err := unstructured.SetNestedMap(input, map[string]any{"enabled": false}, "spec", "components", "base"); err != nil {
			return nil, err
		}
	}
	bare, _, err := generate(ctx, input)
	if err != nil {
		return nil, i.explain(err)
	}
	var (
		faults   []error
		warnings []render.Warning
	)
	for _, o := range overlays {
		matches := 0
		for _, u := range bare {
			if u.GetKind() == o.kind && u.GetName() == o.name {
				matches++
				faults = append(faults, i.try(o, u))
			}
		}
		if matches == 0 {
			warnings = append(warnings, render.Warning{
				Object: i.ID(), Origin: i.At(o.at...), Field: strings.Join(o.at, "."),
				Text: fmt.Sprintf("matches nothing: there is no %s named %q", o.kind, o.name), Hint: named(bare, o.kind),
			})
		}
	}
	return warnings, errors.Join(faults...)
}

// takeOverlays removes all overlays from an IstioOperator, and gives them.
func takeOverlays(input map[string]any) []overlay {
	components, _, _ := unstructured.NestedMap(input, "spec", "components")
	var overlays []overlay
	for _, key := range sortedKeys(components) {
		list, several := components[key].([]any)
		if !several {
			list = []any{components[key]}
		}
		for n, c := range list {
			at := []string{"spec", "components", key, "k8s", "overlays"}
			if several {
				at = []string{"spec", "components", key, strconv.Itoa(n), "k8s", "overlays"}
			}
			component, _ := c.(map[string]any)
			k8s, _ := component["k8s"].(map[string]any)
			given, _ := k8s["overlays"].([]any)
			delete(k8s, "overlays")
			if enabled, ok := component["enabled"].(bool); ok && !enabled {
				continue
			}
			for m, g := range given {
				o, _ := g.(map[string]any)
				kind, _ := o["kind"].(string)
				name, _ := o["name"].(string)
				patches, _ := o["patches"].([]any)
				overlays = append(overlays, overlay{kind, name, patches, append(at, strconv.Itoa(m))})
			}
		}
	}
	if len(overlays) > 0 {
		_ = unstructured.SetNestedMap(input, components, "spec", "components")
	}
	return overlays
}

// try does the patches of an overlay to a copy of an object as Istio does, to see whether they can be done.
func (i installation) try(o overlay, u *unstructured.Unstructured) error {
	var (
		faults []error
		object = loose(u.Object)
	)
	for n, p := range o.patches {
		patch, _ := p.(map[string]any)
		path, _ := patch["path"].(string)
		at := append(slices.Clip(o.at), "patches", strconv.Itoa(n))
		if random(patch["value"]) {
			faults = append(faults, i.fault(append(at, "value"), "write it as a mapping, without the | or the quotes; what is to stay text has to be JSON",
				"is text that reads as a mapping of several keys; Istio would take any one of them"))
			continue
		}
		if err := do(object, path, patch["value"]); err != nil {
			faults = append(faults, i.fault(append(at, "path"), "look at the object without the overlay", "%s/%s: %w", u.GetKind(), u.GetName(), told{err}))
		}
	}
	return errors.Join(faults...)
}

// do is one patch. Istio's code for it panics over some of what it does not expect.
func do(object any, path string, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{Value: p}
		}
	}()
	at, _, err := tpath.GetPathContext(object, util.PathFromString(path), true)
	if err != nil {
		return err
	}
	return tpath.WritePathContext(at, value)
}

// loose gives a copy in the types that Istio's YAML library reads objects into, which its patches tell apart.
func loose(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[any]any, len(v))
		for key, e := range v {
			m[key] = loose(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for n, e := range v {
			list[n] = loose(e)
		}
		return list
	default:
		return v
	}
}

// random says whether a value is text that Istio takes for a mapping, of which it would use any one key.
func random(value any) bool {
	text, ok := value.(string)
	if !ok || !strings.Contains(text, "\n") || !strings.Contains(text, ":") || json.Valid([]byte(text)) {
		return false
	}
	var m map[string]any
	return yaml.Unmarshal([]byte(text), &m) == nil && len(m) > 1
}

// named is a hint with the names that a kind has.
func named(objects []*unstructured.Unstructured, kind string) string {
	var names []string
	for _, u := range objects {
		if u.GetKind() == kind {
			names = append(names, u.GetName())
		}
	}
	if len(names) == 0 {
		return "the installation has no " + kind
	}
	slices.Sort(names)
	return "there is " + strings.Join(slices.Compact(names), ", ")
}
