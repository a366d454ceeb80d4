package legacy

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Translation is what takes the place of an object whose kind is gone.
type Translation struct {
	// YAML is ready to paste: one or more documents.
	YAML string
	// Exact says that the proxies are told the same; Why says what is different or not known.
	Exact bool
	Why   string
}

// Neighbours finds other objects of the same commit; nil when there is none of that name.
type Neighbours func(apiVersion, kind, namespace, name string) map[string]any

// Kind translates an object of a kind that is gone; nil when the kind is not, or when nothing can be said but what [Gone] says.
func Kind(object map[string]any, find Neighbours) *Translation {
	group, _, _ := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
	if find == nil {
		find = func(string, string, string, string) map[string]any { return nil }
	}
	t := &translator{object: object, find: find}
	switch group {
	case "authentication.istio.io":
		t.authentication()
	case "rbac.istio.io":
		t.rbac()
	case "config.istio.io":
		t.mixer()
	case "networking.istio.io":
		t.routing()
	}
	if len(t.documents) == 0 {
		return nil
	}
	return &Translation{YAML: t.text(), Exact: len(t.why) == 0, Why: strings.Join(t.why, "; ")}
}

// translator collects the documents that take an object's place, and why they are not quite the same.
type translator struct {
	object    map[string]any
	find      Neighbours
	documents []map[string]any
	why       []string
}

func (t *translator) but(format string, args ...any) {
	t.why = append(t.why, fmt.Sprintf(format, args...))
}

func (t *translator) kind() string { return fmt.Sprint(t.object["kind"]) }

func (t *translator) name() string {
	name, _ := find(t.object, "metadata", "name").(string)
	return name
}

func (t *translator) namespace() string {
	namespace, _ := find(t.object, "metadata", "namespace").(string)
	return namespace
}

func (t *translator) spec(path ...any) any {
	return find(t.object, append([]any{"spec"}, path...)...)
}

// write a document of the security API. An empty namespace is left out.
func (t *translator) write(kind, namespace, name string, spec map[string]any) {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	group := "security"
	if slices.Contains([]string{"VirtualService", "DestinationRule", "ServiceEntry"}, kind) {
		group = "networking"
	}
	t.documents = append(t.documents, map[string]any{"apiVersion": group + ".istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec})
}

func (t *translator) text() string {
	texts := make([]string, len(t.documents))
	for i, d := range t.documents {
		text, err := yaml.Marshal(d)
		if err != nil {
			panic(err) // made of what YAML was decoded to
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, "---\n")
}

// selector of the workloads behind a Service of the namespace. Without the Service the label app is a guess.
func (t *translator) selector(service string) map[string]any {
	service, _, _ = strings.Cut(service, ".")
	labels, ok := find(t.find("v1", "Service", t.namespace(), service), "spec", "selector").(map[string]any)
	if !ok || len(labels) == 0 {
		t.but("the workloads of %s are chosen by labels today, and no Service %s is among the files: look its selector up", service, service)
		labels = map[string]any{"app": service}
	}
	return map[string]any{"matchLabels": labels}
}

func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func items(v any) []map[string]any {
	list, _ := v.([]any)
	var all []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}
