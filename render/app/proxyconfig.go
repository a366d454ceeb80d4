package app

import (
	"google.golang.org/protobuf/types/known/wrapperspb"
	networkingv1beta1 "istio.io/api/networking/v1beta1"
)

// ProxyConfig sets what the application's sidecars are started with. A change takes effect when pods are made anew: kubectl rollout restart.
type ProxyConfig struct {
	// Concurrency is the number of worker threads of a proxy; 0 means one for every core of the machine. Default: the CPU limit of the proxy, rounded up.
	// Becomes a ProxyConfig's spec.concurrency.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Concurrency *int32 `json:"concurrency,omitempty"`
	// Image is the variant of the proxy's image: default, distroless (no shell) or debug. Default: that of the mesh. Becomes a ProxyConfig's spec.image.imageType.
	// +optional
	// +kubebuilder:validation:Enum=default;distroless;debug
	Image string `json:"image,omitempty"`
	// Environment are variables for the proxy's container, such as ISTIO_META_DNS_CAPTURE: "true"; values are strings.
	// Becomes a ProxyConfig's spec.environmentVariables.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Environment map[string]string `json:"environment,omitempty"`

	Workloads `json:",inline"`
	Escape    `json:",inline"`
}

func (b *builder) proxyConfig() {
	p := b.app.Spec.ProxyConfig
	if p == nil {
		return
	}
	block := []string{"proxyConfig"}
	b.rawAlone(p.Escape, p, block)
	if p.Concurrency == nil && p.Image == "" && len(p.Environment) == 0 && p.Raw == nil && p.Patch == nil {
		b.fail(block, "write concurrency, image or environment, or leave the block out", "says nothing")
	}
	out := &networkingv1beta1.ProxyConfig{Selector: b.workloads(p.Workloads), EnvironmentVariables: p.Environment}
	if p.Concurrency != nil {
		out.Concurrency = wrapperspb.Int32(*p.Concurrency)
	}
	if p.Image != "" {
		out.Image = &networkingv1beta1.ProxyImage{ImageType: p.Image}
	}
	b.emit(proxyConfigKind, "", out, p.Escape, block...)
}
