package app

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/mooring-dev/mooring/render"
)

// maxName is how long a name may be that is to fit into a label and a DNS name: RFC 1123.
const maxName = 63

// The kinds that the model becomes, in the versions that Istio 1.31 serves as the current ones.
var (
	destinationRuleKind       = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "DestinationRule"}
	virtualServiceKind        = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}
	serviceEntryKind          = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "ServiceEntry"}
	gatewayKind               = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "Gateway"}
	sidecarKind               = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "Sidecar"}
	workloadEntryKind         = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "WorkloadEntry"}
	workloadGroupKind         = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "WorkloadGroup"}
	envoyFilterKind           = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1alpha3", Kind: "EnvoyFilter"}
	proxyConfigKind           = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1beta1", Kind: "ProxyConfig"}
	authorizationPolicyKind   = schema.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "AuthorizationPolicy"}
	peerAuthenticationKind    = schema.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "PeerAuthentication"}
	requestAuthenticationKind = schema.GroupVersionKind{Group: "security.istio.io", Version: "v1", Kind: "RequestAuthentication"}
	telemetryKind             = schema.GroupVersionKind{Group: "telemetry.istio.io", Version: "v1", Kind: "Telemetry"}
	wasmPluginKind            = schema.GroupVersionKind{Group: "extensions.istio.io", Version: "v1alpha1", Kind: "WasmPlugin"}
)

// builder makes the objects of one AppConfiguration.
type builder struct {
	object render.Object
	app    AppConfiguration
	around *surroundings
	domain string

	objects  []render.Object
	warnings []render.Warning
	faults   render.Faults
}

// at is the path of a field below spec.
func at(path ...string) []string { return append([]string{"spec"}, path...) }

// index writes the index of a list item for a path.
func index(i int) string { return fmt.Sprint(i) }

// fail notes a fault in a field; path is below spec.
func (b *builder) fail(path []string, hint, format string, args ...any) {
	b.faults.Add(faultAt(b.object, at(path...), hint, format, args...))
}

// warn notes a warning about a field; path is below spec.
func (b *builder) warn(path []string, hint, format string, args ...any) {
	full := at(path...)
	b.warnings = append(b.warnings, render.Warning{
		Object: b.object.ID(), Origin: b.object.At(full...), Field: fieldName(full), Text: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// emit makes one object. spec is a message of Istio's API. block is the path of the block below spec that the object stands for, and key tells it
// from others of its kind; "" for the application's one.
func (b *builder) emit(kind schema.GroupVersionKind, key string, spec json.Marshaler, esc Escape, block ...string) {
	fields, err := b.specOf(kind, spec, esc, block)
	if err != nil {
		b.faults.Add(err)
		return
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetGroupVersionKind(kind)
	u.SetName(objectName(b.app.Name, key))
	u.SetNamespace(b.app.Namespace)
	u.SetLabels(b.labels())
	u.SetAnnotations(b.annotations())
	b.objects = append(b.objects, render.Object{Content: render.ContentOf(u), Origin: b.object.At(at(block...)...), From: b.object.ID()})
}

// specOf gives the spec as JSON values: what was generated and patched, or what stands there raw.
func (b *builder) specOf(kind schema.GroupVersionKind, spec json.Marshaler, esc Escape, block []string) (map[string]any, error) {
	if esc.Raw != nil {
		return b.raw(esc, block)
	}
	text, err := spec.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write %s of %s: %w", fieldName(at(block...)), b.object.ID(), err)
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", fieldName(at(block...)), b.object.ID(), err)
	}
	spellOut(kind, fields)
	numbers(fields)
	if esc.Patch != nil {
		return b.patched(fields, esc, block)
	}
	return fields, nil
}

// spellOut writes values that Istio's messages leave out because they are the first of their kind, where a reader would take the empty mapping for
// something else: an empty outboundTrafficPolicy refuses what is not known.
func spellOut(kind schema.GroupVersionKind, spec map[string]any) {
	say := func(in any, key, value string) {
		if m, ok := in.(map[string]any); ok && m[key] == nil {
			m[key] = value
		}
	}
	switch kind {
	case serviceEntryKind:
		say(spec, "location", "MESH_EXTERNAL")
		say(spec, "resolution", "NONE")
	case sidecarKind:
		say(spec["outboundTrafficPolicy"], "mode", "REGISTRY_ONLY")
	case destinationRuleKind:
		under(spec, "tls", func(tls any) { say(tls, "mode", "DISABLE") })
	case virtualServiceKind:
		routes, _ := spec["http"].([]any)
		for _, r := range routes {
			route, _ := r.(map[string]any)
			if retries, ok := route["retries"].(map[string]any); ok && retries["attempts"] == nil {
				retries["attempts"] = int64(0)
			}
		}
	case gatewayKind:
		servers, _ := spec["servers"].([]any)
		for _, s := range servers {
			server, _ := s.(map[string]any)
			if tls, ok := server["tls"].(map[string]any); ok && tls["httpsRedirect"] == nil {
				say(tls, "mode", "PASSTHROUGH")
			}
		}
	}
}

// under calls f for what stands under a key, at any depth.
func under(v any, key string, f func(any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == key {
				f(e)
			}
			under(e, key, f)
		}
	case []any:
		for _, e := range v {
			under(e, key, f)
		}
	}
}

// numbers makes whole numbers of the texts that Istio's messages make of fields with 64 bits (the JSON mapping of protocol buffers): its CRDs want numbers.
func numbers(spec map[string]any) {
	for _, hash := range []string{"consistentHash", "ringHash", "maglev"} { // all of these fields that there are in Istio's API
		under(spec, hash, func(v any) {
			m, _ := v.(map[string]any)
			for _, key := range []string{"minimumRingSize", "tableSize"} {
				text, _ := m[key].(string)
				if n, err := strconv.ParseInt(text, 10, 64); err == nil {
					m[key] = n
				}
			}
		})
	}
}

// objectName is <app> or <app>-<key>, cut and closed by a hash where it would be too long.
func objectName(app, key string) string {
	name := app
	if key != "" {
		name += "-" + key
	}
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "-" + hex.EncodeToString(sum[:])[:8]
	return strings.TrimRight(name[:maxName-len(tail)], "-.") + tail
}

// labels of every object: those of the design, and over them the AppConfiguration's own.
func (b *builder) labels() map[string]string {
	out := map[string]string{
		"app.kubernetes.io/name":       labelValue(b.app.Name),
		"app.kubernetes.io/component":  labelValue(b.app.Name),
		"app.kubernetes.io/managed-by": "mooring",
	}
	maps.Copy(out, b.app.Labels)
	return out
}

// labelValue makes a name one that a label can hold.
func labelValue(name string) string { return objectName(name, "") }

// annotations of every object: the AppConfiguration's own, but for those with which tools keep their books.
func (b *builder) annotations() map[string]string {
	out := maps.Clone(b.app.Annotations)
	maps.DeleteFunc(out, func(k, _ string) bool {
		return strings.HasPrefix(k, "kubectl.kubernetes.io/") || strings.HasPrefix(k, "config.kubernetes.io/") ||
			strings.HasPrefix(k, "internal.config.kubernetes.io/") || strings.HasPrefix(k, "kustomize.config.k8s.io/")
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// host writes a host out: one without a dot is a Service in the application's namespace. Empty means the application's own Service.
func (b *builder) host(name string) string {
	name = cmp.Or(name, b.app.Name)
	if strings.Contains(name, ".") || strings.HasPrefix(name, "*") || b.app.Namespace == "" {
		return name
	}
	return name + "." + b.app.Namespace + ".svc." + b.domain
}

// selector gives the labels of the application's pods.
func (b *builder) selector() map[string]string {
	if len(b.app.Spec.Selector) > 0 {
		return b.app.Spec.Selector
	}
	if s := b.around.service(b.app.Namespace, b.app.Name); s != nil && len(s.selector) > 0 {
		return s.selector
	}
	return map[string]string{"app": labelValue(b.app.Name)}
}
