package v1alpha1_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

var resource = v1alpha1.GroupVersion.WithResource("moorings")

// minimal is the shortest spec that is right.
const minimal = `{source: {url: "https://git.example.com/mesh/config.git", ref: {branch: main}}}`

// parse reads a YAML mapping.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("test's own YAML: %v\n%s", err, text)
	}
	return m
}

// mooring makes an object of a spec.
func mooring(namespace string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if spec == nil {
		delete(u.Object, "spec")
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	u.SetNamespace(namespace)
	u.SetGenerateName("m-")
	return u
}

// server is the real API server, seen from one namespace.
type server struct {
	dynamic.ResourceInterface
	*kube.Cluster
	namespace string
}

func start(t *testing.T) server {
	t.Helper()
	cluster := kube.Start(t)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	namespace := cluster.Namespace(t)
	return server{ResourceInterface: client.Resource(resource).Namespace(namespace), Cluster: cluster, namespace: namespace}
}

// try gives what the API server makes of a spec, without storing it. validation is kubectl's --validate: Strict names
// unknown fields, Ignore drops them in silence.
func (s server) try(t *testing.T, spec map[string]any, validation string) (*unstructured.Unstructured, error) {
	t.Helper()
	return s.Create(t.Context(), mooring(s.namespace, spec), metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: validation,
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
