package app

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	extensionsv1alpha1 "istio.io/api/extensions/v1alpha1"
	typev1beta1 "istio.io/api/type/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// WasmPlugin runs WebAssembly code in the application's proxies.
type WasmPlugin struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// URL of the code: oci://host/image:tag, https://, http:// or file:// (a path in the proxy's container). Needed unless there is raw.
	// Becomes a WasmPlugin's spec.url.
	// +optional
	// +kubebuilder:validation:Pattern=`^(oci|https?|file)://.+$`
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// SHA256 that the code, or the OCI image, has to have: 64 hexadecimal digits in lower case, without a prefix. Becomes a WasmPlugin's spec.sha256.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-f0-9]{64}$`
	SHA256 string `json:"sha256,omitempty"`
	// PullPolicy says when an OCI image is fetched anew. Default: Always for the tag latest, else IfNotPresent. Becomes a WasmPlugin's spec.imagePullPolicy.
	// +optional
	// +kubebuilder:validation:Enum=IfNotPresent;Always
	PullPolicy string `json:"pullPolicy,omitempty"`
	// PullSecret is the name of a Secret of type kubernetes.io/dockerconfigjson in the same namespace. Becomes a WasmPlugin's spec.imagePullSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PullSecret string `json:"pullSecret,omitempty"`
	// VerificationKey is the public key that signed the image. Becomes a WasmPlugin's spec.verificationKey.
	// +optional
	VerificationKey string `json:"verificationKey,omitempty"`
	// PluginName is the name with which Envoy configures the plugin, where one binary holds several. Becomes a WasmPlugin's spec.pluginName.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	PluginName string `json:"pluginName,omitempty"`
	// Config is what the plugin is configured with, as it wants it. Becomes a WasmPlugin's spec.pluginConfig.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Config *runtime.RawExtension `json:"config,omitempty"`
	// Phase is what the plugin stands before in the chain of filters: authentication, authorization or statistics. Default: at the end, before the router.
	// Becomes a WasmPlugin's spec.phase.
	// +optional
	// +kubebuilder:validation:Enum=AUTHN;AUTHZ;STATS
	Phase string `json:"phase,omitempty"`
	// Priority orders the plugins of one phase: higher ones run first. Default: 0. Becomes a WasmPlugin's spec.priority.
	// +optional
	Priority *int32 `json:"priority,omitempty"`
	// FailOpen lets traffic pass when the plugin cannot be fetched or fails; else it is refused. Default: false. Becomes a WasmPlugin's spec.failStrategy.
	// +optional
	FailOpen bool `json:"failOpen,omitempty"`
	// Type is what the plugin works on. Default: HTTP. Becomes a WasmPlugin's spec.type.
	// +optional
	// +kubebuilder:validation:Enum=HTTP;NETWORK
	Type string `json:"type,omitempty"`
	// Match limits the plugin to traffic for which one item holds. Default: all. Becomes a WasmPlugin's spec.match.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Match []WasmMatch `json:"match,omitempty"`
	// Environment are variables of the plugin's virtual machine; values are strings. Becomes a WasmPlugin's spec.vmConfig.env.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=256
	Environment map[string]string `json:"environment,omitempty"`

	Scope  `json:",inline"`
	Escape `json:",inline"`
}

// WasmMatch is one kind of traffic.
type WasmMatch struct {
	// Mode is which side of it the proxy is on: SERVER receives, CLIENT sends. Default: CLIENT_AND_SERVER. Becomes a WasmPlugin's spec.match[].mode.
	// +optional
	// +kubebuilder:validation:Enum=CLIENT;SERVER;CLIENT_AND_SERVER
	Mode string `json:"mode,omitempty"`
	// Ports are the numbers of ports, that of the container for SERVER. Default: all. Becomes a WasmPlugin's spec.match[].ports[].number.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports,omitempty"`
}

func (b *builder) wasmPlugins() {
	for i := range b.app.Spec.WasmPlugins {
		b.wasmPlugin(&b.app.Spec.WasmPlugins[i], []string{"wasmPlugins", index(i)})
	}
}

func (b *builder) wasmPlugin(p *WasmPlugin, block []string) {
	b.rawAlone(p.Escape, p, block, "name")
	if p.Raw == nil {
		b.wasmSense(p, block)
	}
	out := &extensionsv1alpha1.WasmPlugin{
		Url: p.URL, Sha256: p.SHA256, ImagePullSecret: p.PullSecret, VerificationKey: p.VerificationKey, PluginName: p.PluginName,
		ImagePullPolicy: extensionsv1alpha1.PullPolicy(extensionsv1alpha1.PullPolicy_value[p.PullPolicy]),
		Phase:           extensionsv1alpha1.PluginPhase(extensionsv1alpha1.PluginPhase_value[p.Phase]),
		Type:            extensionsv1alpha1.PluginType(extensionsv1alpha1.PluginType_value[p.Type]),
	}
	out.Selector, out.TargetRefs = b.scope(p.Scope)
	if p.Priority != nil {
		out.Priority = wrapperspb.Int32(*p.Priority)
	}
	if p.FailOpen {
		out.FailStrategy = extensionsv1alpha1.FailStrategy_FAIL_OPEN
	}
	if p.Config != nil {
		out.PluginConfig = &structpb.Struct{}
		if err := protojson.Unmarshal(p.Config.Raw, out.PluginConfig); err != nil {
			b.fail(below(block, "config"), "write it as a mapping", "%s", protoFault(err))
		}
	}
	for _, m := range p.Match {
		match := &extensionsv1alpha1.WasmPlugin_TrafficSelector{Mode: typev1beta1.WorkloadMode(typev1beta1.WorkloadMode_value[m.Mode])}
		for _, n := range m.Ports {
			match.Ports = append(match.Ports, &typev1beta1.PortSelector{Number: uint32(n)}) //nolint:gosec // 1 to 65535 by the CRD
		}
		out.Match = append(out.Match, match)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		if out.VmConfig == nil {
			out.VmConfig = &extensionsv1alpha1.VmConfig{}
		}
		out.VmConfig.Env = append(out.VmConfig.Env, &extensionsv1alpha1.EnvVar{Name: name, Value: p.Environment[name]})
	}
	b.emit(wasmPluginKind, p.Name, out, p.Escape, block...)
}

// wasmSense tells what Istio accepts and somebody regrets.
func (b *builder) wasmSense(p *WasmPlugin, block []string) {
	if p.URL == "" {
		b.fail(block, "write url: oci://HOST/IMAGE:TAG and its sha256", "there is no url to fetch the plugin from")
	}
	pinned := p.SHA256 != "" || strings.Contains(p.URL, "@sha256:") || strings.HasPrefix(p.URL, "file://")
	if p.URL != "" && !pinned {
		b.warn(below(block, "url"), "write sha256 beside it, or for oci:// name the image by its digest",
			"%s may become other code at any time, and no commit tells of it", p.URL)
	}
	if p.FailOpen && strings.HasPrefix(p.Phase, "AUTH") {
		b.warn(below(block, "failOpen"), "leave failOpen out unless another policy checks the same",
			"a plugin of phase %s that fails lets every request pass", p.Phase)
	}
}
