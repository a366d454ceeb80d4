package mesh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// The installation that an IstioOperator gets which does not say another: see "Hub, tag and version" in the package comment.
const (
	DefaultHub     = "registry.istio.io/release"
	DefaultTag     = "1.31.4"
	DefaultVersion = "1.31.4"
)

const (
	group   = "install.istio.io"
	kind    = "IstioOperator"
	version = "v1alpha1"
)

// Expander replaces IstioOperators by the objects of their installations. The zero value is ready to use, and it may be used by many goroutines.
type Expander struct {
	// Hub and Tag of the images where an IstioOperator names none. Empty means DefaultHub and DefaultTag.
	Hub, Tag string
	// Version that the labels of the charts tell. Empty means DefaultVersion.
	Version string
}

var _ render.Expander = Expander{}

// Expand gives all objects but the IstioOperators, and what these stand for.
func (e Expander) Expand(ctx context.Context, objects []render.Object) ([]render.Object, []render.Warning, error) {
	e = Expander{Hub: cmp.Or(e.Hub, DefaultHub), Tag: cmp.Or(e.Tag, DefaultTag), Version: cmp.Or(e.Version, DefaultVersion)}
	var (
		expanded []render.Object
		warnings []render.Warning
		faults   []error
	)
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); gvk.Group != group || gvk.Kind != kind {
			expanded = append(expanded, o)
			continue
		}
		i := installation{Object: o, defaults: e}
		made, more, err := i.render(ctx)
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("render %s: %w", o.ID(), context.Cause(ctx))
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		expanded, warnings = append(expanded, made...), append(warnings, more...)
	}
	if len(faults) > 0 {
		return nil, nil, errors.Join(faults...)
	}
	return expanded, append(warnings, homeless(objects, expanded)...), nil
}

// installation is one IstioOperator.
type installation struct {
	render.Object
	defaults Expander
}

// render gives its objects.
func (i installation) render(ctx context.Context) ([]render.Object, []render.Warning, error) {
	if err := i.vet(); err != nil {
		return nil, nil, err
	}
	input := i.input()
	made, heard, err := generate(ctx, input)
	if err != nil {
		return nil, nil, i.explain(err)
	}
	warnings, err := i.vetOverlays(ctx, input)
	if err != nil {
		return nil, nil, err
	}
	objects := make([]render.Object, 0, len(made))
	for _, u := range made {
		seal{i.defaults.Version, i.GetName()}.stamp(u)
		leaveToIstiod(u)
		objects = append(objects, render.Object{Content: render.ContentOf(u), Origin: i.Origin, From: i.ID()})
	}
	for _, text := range heard {
		warnings = append(warnings, render.Warning{Object: i.ID(), Origin: i.Origin, Text: text})
	}
	return objects, warnings, nil
}

// input is the IstioOperator as Istio is given it: with hub and tag, and without what is no business of a render.
func (i installation) input() map[string]any {
	spec := map[string]any{}
	if given, ok := i.Unstructured().DeepCopy().Object["spec"].(map[string]any); ok {
		spec = given
	}
	if s, _ := spec["hub"].(string); s == "" {
		spec["hub"] = i.defaults.Hub
	}
	if t, found := spec["tag"]; !found || t == nil || t == "" {
		spec["tag"] = i.defaults.Tag
	}
	return map[string]any{
		"apiVersion": group + "/" + version,
		"kind":       kind,
		"metadata":   map[string]any{"name": i.GetName()},
		"spec":       spec,
	}
}

// fault is an error at a field.
func (i installation) fault(path []string, hint, format string, args ...any) error {
	at := i.At(path...)
	return &render.Error{File: at.File, Line: at.Line, Hint: hint, Err: fmt.Errorf("%s: %s: %w", i.ID(), strings.Join(path, "."), fmt.Errorf(format, args...))}
}

// explain makes an Error of what Istio, Helm or a panic said.
func (i installation) explain(err error) error {
	if p, ok := errors.AsType[*Panic](err); ok {
		return &render.Error{
			File: i.Origin.File, Line: i.Origin.Line, Err: fmt.Errorf("%s: Istio's renderer failed in a way that it should not: %w", i.ID(), p),
			Hint: "see whether istioctl manifest generate does too; most likely a field has a value of another type than the charts expect",
		}
	}
	return &render.Error{File: i.Origin.File, Line: i.Origin.Line, Err: fmt.Errorf("%s: %w", i.ID(), told{err}), Hint: "istioctl manifest generate says the same"}
}

// maxText of an error of Helm, in bytes: it quotes what it was given.
const maxText = 600

// told is an error whose text is on one line and not too long for a status.
type told struct{ error }

func (t told) Error() string {
	text := strings.Join(strings.Fields(t.error.Error()), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + " …"
	}
	return text
}

func (t told) Unwrap() error { return t.error }

// homeless warns of namespaces that objects of an installation are in, and that are not among the objects themselves.
func homeless(given, expanded []render.Object) []render.Warning {
	home := map[string]bool{"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	for _, o := range expanded {
		if o.GroupVersionKind().GroupKind().String() == "Namespace" {
			home[o.GetName()] = true
		}
	}
	var warnings []render.Warning
	for _, operator := range given {
		if operator.GroupVersionKind().Group != group || operator.GetKind() != kind {
			continue
		}
		var missing []string
		for _, o := range expanded {
			if o.From == operator.ID() && !home[o.GetNamespace()] && !slices.Contains(missing, o.GetNamespace()) {
				missing = append(missing, o.GetNamespace())
			}
		}
		slices.Sort(missing)
		for _, namespace := range missing {
			warnings = append(warnings, render.Warning{
				Object: operator.ID(), Origin: operator.Origin,
				Text: fmt.Sprintf("installs into the namespace %s, and there is no Namespace of this name beside it", namespace),
				Hint: "add one, unless something else makes it: an installation does not bring its namespace",
			})
		}
	}
	return warnings
}

// byID sorts objects, and keeps the order of those with the same ID.
func byID(a, b *unstructured.Unstructured) int {
	x, y := render.IDOf(a), render.IDOf(b)
	return cmp.Or(strings.Compare(x.Group, y.Group), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
}
