package app

import (
	"encoding/json"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	networkingv1alpha3 "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// EnvoyFilter changes the configuration that Istio makes for the application's proxies. Istio promises nothing about that configuration: an upgrade may
// break the filter, or the filter the proxy.
type EnvoyFilter struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Unsafe has to be true: whoever writes an EnvoyFilter takes it on to test it with each upgrade of Istio. Becomes nothing.
	// +optional
	Unsafe bool `json:"unsafe,omitempty"`
	// Context is where patches apply that have no match.context of their own: to what the sidecar receives, to what it sends, to gateways, or to all three.
	// Default: ANY. Becomes an EnvoyFilter's spec.configPatches[].match.context.
	// +optional
	// +kubebuilder:validation:Enum=ANY;SIDECAR_INBOUND;SIDECAR_OUTBOUND;GATEWAY
	Context string `json:"context,omitempty"`
	// ProxyVersion is a regular expression (RE2) for the versions of the proxy to which patches apply that have no match.proxy.proxyVersion of
	// their own, such as ^1\.31.*. Default: all. Becomes an EnvoyFilter's spec.configPatches[].match.proxy.proxyVersion.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ProxyVersion string `json:"proxyVersion,omitempty"`
	// Priority orders EnvoyFilters: lower ones are applied first. Default: 0. Becomes an EnvoyFilter's spec.priority.
	// +optional
	Priority int32 `json:"priority,omitempty"`
	// Patches in the words of Istio: applyTo, match, patch. Needed unless there is raw. Becomes an EnvoyFilter's spec.configPatches.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Patches []EnvoyPatch `json:"patches,omitempty"`

	Scope  `json:",inline"`
	Escape `json:",inline"`
}

// EnvoyPatch is one change, as Istio's EnvoyFilter has it in spec.configPatches.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:pruning:PreserveUnknownFields
type EnvoyPatch struct {
	runtime.RawExtension `json:",inline"`
}

func (b *builder) envoyFilters() {
	for i := range b.app.Spec.EnvoyFilters {
		b.envoyFilter(&b.app.Spec.EnvoyFilters[i], []string{"envoyFilters", index(i)})
	}
}

func (b *builder) envoyFilter(f *EnvoyFilter, block []string) {
	b.rawAlone(f.Escape, f, block, "name", "unsafe")
	if !f.Unsafe {
		b.fail(block, "write unsafe: true once you have tried it with the version of Istio that runs, and try it again before each upgrade",
			"an EnvoyFilter depends on what Istio may change at any time")
	}
	if len(f.Patches) == 0 && f.Raw == nil && f.Patch == nil {
		b.fail(block, "write patches: [{applyTo: …, match: …, patch: …}]", "changes nothing: there are no patches")
	}
	if _, err := regexp.Compile(f.ProxyVersion); err != nil {
		b.fail(below(block, "proxyVersion"), `write a regular expression such as '^1\.31.*'`, "%w", err)
	}
	out := &networkingv1alpha3.EnvoyFilter{Priority: f.Priority}
	selector, targets := b.scope(f.Scope)
	out.TargetRefs = targets
	if selector != nil {
		out.WorkloadSelector = &networkingv1alpha3.WorkloadSelector{Labels: selector.MatchLabels}
	}
	for i := range f.Patches {
		if p := b.envoyPatch(f, f.Patches[i].Raw, below(block, "patches", index(i))); p != nil {
			out.ConfigPatches = append(out.ConfigPatches, p)
		}
	}
	b.emit(envoyFilterKind, f.Name, out, f.Escape, block...)
}

// envoyPatch reads one patch strictly: Istio itself drops unknown fields, and a match that is dropped widens the patch.
func (b *builder) envoyPatch(f *EnvoyFilter, text []byte, block []string) *networkingv1alpha3.EnvoyFilter_EnvoyConfigObjectPatch {
	fields := map[string]any{}
	if err := utiljson.Unmarshal(text, &fields); err != nil {
		b.fail(block, "", "%w", err)
		return nil
	}
	match, _ := fields["match"].(map[string]any)
	if match == nil && fields["match"] == nil {
		match = map[string]any{}
	}
	if f.Context != "" && match != nil && match["context"] == nil {
		match["context"] = f.Context
	}
	if f.ProxyVersion != "" && match != nil {
		proxy, _ := match["proxy"].(map[string]any)
		if proxy == nil {
			proxy = map[string]any{}
		}
		if proxy["proxyVersion"] == nil {
			proxy["proxyVersion"] = f.ProxyVersion
		}
		match["proxy"] = proxy
	}
	if len(match) > 0 {
		fields["match"] = match
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		b.fail(block, "", "%w", err)
		return nil
	}
	out := &networkingv1alpha3.EnvoyFilter_EnvoyConfigObjectPatch{}
	if err := protojson.Unmarshal(whole, out); err != nil {
		b.fail(block, "a patch has applyTo, match and patch: {operation, value}, as in Istio's reference of EnvoyFilter", "%s", protoFault(err))
		return nil
	}
	return out
}

var protoPosition = regexp.MustCompile(`^proto:\s*(syntax error )?\(line [0-9:]+\):\s*`)

// protoFault says what the library says, without its position, which is one in text that nobody wrote, and without the spaces that it varies on purpose.
func protoFault(err error) string {
	return protoPosition.ReplaceAllString(strings.ReplaceAll(err.Error(), "\u00a0", " "), "")
}
