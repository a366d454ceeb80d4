package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// mooringsFromFiles reads the Moorings in files and gives them as the cluster would have them.
func (c *cli) mooringsFromFiles(ctx context.Context, cluster *cluster, files []string, namespaceGiven bool) ([]*v1alpha1.Mooring, error) {
	var all []*v1alpha1.Mooring
	for _, file := range files {
		written, err := c.readMoorings(file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		for _, u := range written {
			switch {
			case u.GetNamespace() == "":
				u.SetNamespace(cluster.namespace)
			case namespaceGiven && u.GetNamespace() != cluster.namespace:
				return nil, withHint(fmt.Errorf("read %s: Mooring %s is in namespace %s, not in %s", file, u.GetName(), u.GetNamespace(), cluster.namespace),
					"leave out --namespace")
			}
			m, err := c.asServed(ctx, cluster, u)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", file, err)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// readMoorings takes the Moorings out of a file of YAML documents, which may hold other objects too. "-" is standard input.
func (c *cli) readMoorings(file string) ([]*unstructured.Unstructured, error) {
	in := c.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, cause(err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var found []*unstructured.Unstructured
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		object := map[string]any{}
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		u := &unstructured.Unstructured{Object: object}
		if u.GroupVersionKind().GroupKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.Kind).GroupKind() {
			continue
		}
		if u.GroupVersionKind().Version != v1alpha1.GroupVersion.Version {
			return nil, withHint(fmt.Errorf("document %d: apiVersion %s is not known", n, u.GetAPIVersion()), "write apiVersion: %s", v1alpha1.GroupVersion)
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("document %d: the Mooring has no metadata.name", n)
		}
		found = append(found, u)
	}
	if len(found) == 0 {
		return nil, withHint(errors.New("there is no Mooring in it"), "it needs an object with apiVersion: %s and kind: %s", v1alpha1.GroupVersion, v1alpha1.Kind)
	}
	return found, nil
}

// asServed has the API server look at a written Mooring, without storing it: every rule is held, every default filled in,
// and what is known about a Mooring of that name (which kinds it has objects of, what it applied) is there. Where the API
// server cannot be asked, because Mooring is not installed or the user has no right, a note says so and the
// Mooring is taken as it is written.
func (c *cli) asServed(ctx context.Context, cluster *cluster, written *unstructured.Unstructured) (*v1alpha1.Mooring, error) {
	name := written.GetNamespace() + "/" + written.GetName()
	served, err := cluster.dryRun(ctx, written)
	switch {
	case err == nil:
		return decodeMooring(served)
	case isNoCRD(err):
		c.note("Mooring %s was not looked at by the API server: Mooring is not installed there", name)
	case apierrors.IsForbidden(err):
		c.note("Mooring %s was not looked at by the API server: %v", name, err)
	case apierrors.IsNotFound(err): // the namespace
		c.note("Mooring %s was not looked at by the API server: %v", name, err)
	default:
		return nil, withHint(fmt.Errorf("the API server refuses Mooring %s: %w", name, err), "kubectl explain mooring.spec tells about the fields")
	}
	m, err := decodeMooring(written)
	if err != nil {
		return nil, fmt.Errorf("read Mooring %s: %w", name, err)
	}
	m.Default()
	return m, nil
}

func (c *cli) note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.errOut, "%s %s\n", paletteFor(c.color, c.errOut, c.getenv).yellow("note:"), fmt.Sprintf(format, args...))
}

// dryRun creates the Mooring, or replaces the one of that name, without storing it. A replacement rather than a patch,
// because a field that the file no longer has must be gone from the plan as well.
func (c *cluster) dryRun(ctx context.Context, written *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(written.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(written), live)
	if apierrors.IsNotFound(err) && !isNoCRD(err) {
		served := written.DeepCopy()
		return served, strict.Create(ctx, served, client.DryRunAll, fieldManager)
	}
	if err != nil {
		return nil, err
	}
	if spec, ok := written.Object["spec"]; ok {
		live.Object["spec"] = runtime.DeepCopyJSONValue(spec)
	} else {
		delete(live.Object, "spec")
	}
	return live, strict.Update(ctx, live, client.DryRunAll, fieldManager)
}

// decodeMooring makes a Mooring of an object. A field that it does not have is an error.
func decodeMooring(u *unstructured.Unstructured) (*v1alpha1.Mooring, error) {
	m := &v1alpha1.Mooring{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, m, true); err != nil {
		return nil, err
	}
	return m, nil
}
