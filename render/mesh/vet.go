package mesh

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/manifests"
	"istio.io/istio/operator/pkg/apis"
)

// The bounds of one IstioOperator: far above what people write, and low enough that rendering it takes neither the time nor the memory of others.
const (
	maxBytes = 1 << 20
	maxDepth = 64
)

// vet refuses what a render of a commit may not depend on, and what Istio would not say the place of.
func (i installation) vet() error {
	if v := i.GroupVersionKind().Version; v != version {
		return i.fault([]string{"apiVersion"}, "write "+group+"/"+version, "there is no version %s of an IstioOperator", v)
	}
	if weight, deep := measure(i.Unstructured().Object, maxDepth); deep {
		return i.fault([]string{"spec"}, "", "is nested deeper than %d levels", maxDepth)
	} else if weight > maxBytes {
		return i.fault([]string{"spec"}, "", "is larger than %d KiB", maxBytes>>10)
	}
	given, found := i.Unstructured().Object["spec"]
	if !found || given == nil {
		return nil
	}
	spec, ok := given.(map[string]any)
	if !ok {
		return i.fault([]string{"spec"}, "", "is no mapping")
	}
	faults := []error{i.vetProfile(spec), i.vetImages(spec)}
	if revision, _ := spec["revision"].(string); revision != "" {
		if _, err := strconv.ParseFloat(revision, 64); err == nil {
			faults = append(faults, i.fault([]string{"spec", "revision"}, "write something that is no number, such as 1-31 or canary", "Istio reads %q as a number", revision))
		}
	}
	for _, m := range mismatches(spec) {
		faults = append(faults, i.fault(m.path, m.hint, "%w", m.err))
	}
	return errors.Join(faults...)
}

// measure gives about the bytes of a value, and whether it is nested deeper than depth.
func measure(v any, depth int) (bytes int, deep bool) {
	if depth == 0 {
		return 0, true
	}
	each := func(e any) {
		n, d := measure(e, depth-1)
		bytes, deep = bytes+n, deep || d
	}
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			bytes += len(k) + 4
			each(e)
		}
	case []any:
		for _, e := range v {
			bytes++
			each(e)
		}
	case string:
		bytes = len(v) + 2
	default:
		bytes = 8
	}
	return bytes, deep
}

// vetProfile refuses profiles and charts that are files of the machine.
func (i installation) vetProfile(spec map[string]any) error {
	var charts error
	if folder, _ := spec["installPackagePath"].(string); folder != "" {
		charts = i.fault([]string{"spec", "installPackagePath"}, "leave it out: the charts are Mooring's own; render others with helm and commit what comes out",
			"is a folder of the machine that renders")
	}
	profile, _ := spec["profile"].(string)
	known := Profiles()
	if profile == "" || slices.Contains(known, profile) {
		return charts
	}
	return errors.Join(charts, i.fault([]string{"spec", "profile"}, "take one of "+strings.Join(known, ", ")+", and write what differs beside it",
		"%q is none of Istio's profiles", profile))
}

// Profiles are the names that spec.profile may have, sorted.
func Profiles() []string {
	files, err := fs.Glob(manifests.FS, "profiles/*.yaml")
	if err != nil {
		return nil // the pattern is a constant, and the files are part of the program
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	slices.Sort(names)
	return names
}

// vetImages refuses images that are another one tomorrow, and Istio's builds for its own tests.
func (i installation) vetImages(spec map[string]any) error {
	var faults []error
	refuse := func(path []string, hint, format string, args ...any) {
		faults = append(faults, i.fault(path, hint, format, args...))
	}
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(v[key], append(slices.Clip(path), key))
			}
		case []any:
			for n, e := range v {
				walk(e, append(slices.Clip(path), strconv.Itoa(n)))
			}
		case float64:
			if path[len(path)-1] == "tag" {
				refuse(path, fmt.Sprintf("quote it: tag: %q", fmt.Sprint(v)), "is a number, which loses its last zeros")
			}
		case string:
			switch key := path[len(path)-1]; {
			case key == "tag" && (v == "latest" || strings.HasPrefix(v, "latest-")), key == "image" && strings.Contains(v, ":latest"):
				refuse(path, "name a release, such as "+DefaultTag, "%s is another image tomorrow", v)
			case key == "tag" && v == "unknown", key == "hub" && v == "unknown":
				refuse(path, "leave it out for Mooring's default", "%s is none", v)
			case (key == "hub" || key == "image") && (strings.Contains(v+"/", "/testing/") || strings.Contains(v, "istio-testing")):
				refuse(path, "take "+DefaultHub+" or a mirror of it", "%s has Istio's builds for tests, which are deleted after a while", v)
			}
		}
	}
	walk(spec["hub"], []string{"spec", "hub"})
	walk(spec["tag"], []string{"spec", "tag"})
	walk(spec["values"], []string{"spec", "values"})
	walk(spec["unvalidatedValues"], []string{"spec", "unvalidatedValues"})
	components, _ := spec["components"].(map[string]any)
	for _, name := range sortedKeys(components) {
		list, ok := components[name].([]any)
		at := []string{"spec", "components", name}
		if !ok {
			list = []any{components[name]}
		}
		for n, e := range list {
			if ok {
				at = []string{"spec", "components", name, strconv.Itoa(n)}
			}
			component, _ := e.(map[string]any)
			walk(component["hub"], append(slices.Clip(at), "hub"))
			walk(component["tag"], append(slices.Clip(at), "tag"))
		}
	}
	return errors.Join(faults...)
}

// mismatches are the fields of a spec that Istio does not know or that have the wrong type.
func mismatches(spec map[string]any) []mismatch {
	found := inStruct(spec, []string{"spec"})
	found = append(found, inMessage((&apis.Values{}).ProtoReflect().Descriptor(), spec["values"], []string{"spec", "values"})...)
	config := (&meshconfig.MeshConfig{}).ProtoReflect().Descriptor()
	found = append(found, inMessage(config, spec["meshConfig"], []string{"spec", "meshConfig"})...)
	if values, ok := spec["values"].(map[string]any); ok {
		found = append(found, inMessage(config, values["meshConfig"], []string{"spec", "values", "meshConfig"})...)
	}
	return found
}
