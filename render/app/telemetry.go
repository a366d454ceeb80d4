package app

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/wrapperspb"
	telemetryv1alpha1 "istio.io/api/telemetry/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Telemetry says what is traced, measured and logged. It has at least one of tracing, metrics and accessLog. Providers are those that the mesh's
// configuration has under extensionProviders.
type Telemetry struct {
	// Tracing says which requests are traced. Becomes a Telemetry's spec.tracing.
	// +optional
	Tracing *Tracing `json:"tracing,omitempty"`
	// Metrics says which metrics are kept, with which tags. Becomes a Telemetry's spec.metrics.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`
	// AccessLog says which requests are logged; {} logs all with the mesh's default provider. Becomes a Telemetry's spec.accessLogging.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`

	Scope  `json:",inline"`
	Escape `json:",inline"`
}

// Tracing says which requests are traced and with what.
type Tracing struct {
	// Sampling is how many of the requests are traced, in percent from 0 to 100, such as 0.5. Default: that of the mesh, which is 1 if nothing is said.
	// Becomes a Telemetry's spec.tracing[].randomSamplingPercentage.
	// +optional
	Sampling *Percent `json:"sampling,omitempty"`
	// Providers that spans are sent to, by name; Istio takes one. Default: that of the mesh. Becomes a Telemetry's spec.tracing[].providers[].name.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:MinLength=1
	Providers []string `json:"providers,omitempty"`
	// Tags that spans get, by name: a string as it stands, {header: NAME, default: VALUE} for that of a request's header, or
	// {environment: NAME, default: VALUE} for that of a variable of the proxy. Becomes a Telemetry's spec.tracing[].customTags.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Tags map[string]apiextensionsv1.JSON `json:"tags,omitempty"`
	// Disabled sends no spans; the headers of traces are still passed on. Default: false. Becomes a Telemetry's spec.tracing[].disableSpanReporting.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
}

// Metrics says which metrics are kept.
type Metrics struct {
	// Providers that the metrics are for, by name, such as prometheus. Default: those of the mesh. Becomes a Telemetry's spec.metrics[].providers[].name.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MinLength=1
	Providers []string `json:"providers,omitempty"`
	// Disabled metrics are not kept, on neither side; ALL_METRICS means all. Becomes a Telemetry's spec.metrics[].overrides[] with disabled: true.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Disabled []MetricName `json:"disabled,omitempty"`
	// Overrides change metrics, in this order, after disabled. Becomes a Telemetry's spec.metrics[].overrides.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Overrides []MetricOverride `json:"overrides,omitempty"`
}

// MetricName is one of Istio's standard metrics.
//
// +kubebuilder:validation:Enum=ALL_METRICS;REQUEST_COUNT;REQUEST_DURATION;REQUEST_SIZE;RESPONSE_SIZE;TCP_OPENED_CONNECTIONS;TCP_CLOSED_CONNECTIONS;TCP_SENT_BYTES;TCP_RECEIVED_BYTES;GRPC_REQUEST_MESSAGES;GRPC_RESPONSE_MESSAGES
type MetricName string

// MetricOverride changes one metric.
type MetricOverride struct {
	// Metric that is changed. Default: ALL_METRICS. Becomes a Telemetry's spec.metrics[].overrides[].match.metric.
	// +optional
	Metric MetricName `json:"metric,omitempty"`
	// Mode is which side reports it: SERVER receives, CLIENT sends. Default: CLIENT_AND_SERVER. Becomes a Telemetry's spec.metrics[].overrides[].match.mode.
	// +optional
	// +kubebuilder:validation:Enum=CLIENT;SERVER;CLIENT_AND_SERVER
	Mode string `json:"mode,omitempty"`
	// Disabled says whether the metric is left out; false turns one on again that the mesh has off. Becomes a Telemetry's spec.metrics[].overrides[].disabled.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// Tags by name: remove drops the tag, everything else is a CEL expression for its value, such as request.host.
	// Becomes a Telemetry's spec.metrics[].overrides[].tagOverrides.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Tags map[string]string `json:"tags,omitempty"`
}

// AccessLog says which requests are logged.
type AccessLog struct {
	// Providers that logs are sent to, by name, such as envoy (standard output). Default: those of the mesh. Becomes a Telemetry's spec.accessLogging[].providers[].name.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MinLength=1
	Providers []string `json:"providers,omitempty"`
	// Disabled logs nothing. Default: false. Becomes a Telemetry's spec.accessLogging[].disabled.
	// +optional
	Disabled *bool `json:"disabled,omitempty"`
	// Filter is a CEL expression for what is logged, such as response.code >= 500. Default: everything. Becomes a Telemetry's spec.accessLogging[].filter.expression.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Filter string `json:"filter,omitempty"`
	// Mode is which side logs: SERVER receives, CLIENT sends. Default: CLIENT_AND_SERVER. Becomes a Telemetry's spec.accessLogging[].match.mode.
	// +optional
	// +kubebuilder:validation:Enum=CLIENT;SERVER;CLIENT_AND_SERVER
	Mode string `json:"mode,omitempty"`
}

func (b *builder) telemetry() {
	t := b.app.Spec.Telemetry
	if t == nil {
		return
	}
	block := []string{"telemetry"}
	b.rawAlone(t.Escape, t, block)
	if t.Tracing == nil && t.Metrics == nil && t.AccessLog == nil && t.Raw == nil && t.Patch == nil {
		b.fail(block, "write tracing, metrics or accessLog, or leave the block out", "says nothing")
	}
	out := &telemetryv1alpha1.Telemetry{}
	out.Selector, out.TargetRefs = b.scope(t.Scope)
	if t.Tracing != nil {
		out.Tracing = []*telemetryv1alpha1.Tracing{b.tracing(t.Tracing, below(block, "tracing"))}
	}
	if t.Metrics != nil {
		out.Metrics = []*telemetryv1alpha1.Metrics{b.metrics(t.Metrics, below(block, "metrics"))}
	}
	if l := t.AccessLog; l != nil {
		log := &telemetryv1alpha1.AccessLogging{Providers: providers(l.Providers), Disabled: boolValue(l.Disabled)}
		if l.Mode != "" {
			log.Match = &telemetryv1alpha1.AccessLogging_LogSelector{Mode: workloadMode(l.Mode)}
		}
		if l.Filter != "" {
			log.Filter = &telemetryv1alpha1.AccessLogging_Filter{Expression: l.Filter}
		}
		out.AccessLogging = []*telemetryv1alpha1.AccessLogging{log}
	}
	b.emit(telemetryKind, "", out, t.Escape, block...)
}

func (b *builder) tracing(t *Tracing, block []string) *telemetryv1alpha1.Tracing {
	out := &telemetryv1alpha1.Tracing{Providers: providers(t.Providers), DisableSpanReporting: boolValue(t.Disabled)}
	if t.Sampling != nil {
		out.RandomSamplingPercentage = wrapperspb.Double(float64(*t.Sampling))
	}
	for _, name := range slices.Sorted(maps.Keys(t.Tags)) {
		if out.CustomTags == nil {
			out.CustomTags = map[string]*telemetryv1alpha1.Tracing_CustomTag{}
		}
		out.CustomTags[name] = b.spanTag(t.Tags[name].Raw, below(block, "tags", name))
	}
	return out
}

// spanTag reads a tag's value, for which a CRD has no type: a string or a mapping.
func (b *builder) spanTag(text []byte, at []string) *telemetryv1alpha1.Tracing_CustomTag {
	const hint = "write a string, {header: NAME, default: VALUE} or {environment: NAME, default: VALUE}"
	var literal string
	if json.Unmarshal(text, &literal) == nil {
		if literal == "" {
			b.fail(at, hint, "a tag needs a value")
		}
		return &telemetryv1alpha1.Tracing_CustomTag{Type: &telemetryv1alpha1.Tracing_CustomTag_Literal{
			Literal: &telemetryv1alpha1.Tracing_Literal{Value: literal},
		}}
	}
	var from struct {
		Header      string `json:"header"`
		Environment string `json:"environment"`
		Default     string `json:"default"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&from); err != nil || (from.Header == "") == (from.Environment == "") {
		b.fail(at, hint+"; put a number in quotes", "is neither a string nor a mapping with header or environment")
		return nil
	}
	if from.Header != "" {
		return &telemetryv1alpha1.Tracing_CustomTag{Type: &telemetryv1alpha1.Tracing_CustomTag_Header{
			Header: &telemetryv1alpha1.Tracing_RequestHeader{Name: from.Header, DefaultValue: from.Default},
		}}
	}
	return &telemetryv1alpha1.Tracing_CustomTag{Type: &telemetryv1alpha1.Tracing_CustomTag_Environment{
		Environment: &telemetryv1alpha1.Tracing_Environment{Name: from.Environment, DefaultValue: from.Default},
	}}
}

func (b *builder) metrics(m *Metrics, block []string) *telemetryv1alpha1.Metrics {
	out := &telemetryv1alpha1.Metrics{Providers: providers(m.Providers)}
	if len(m.Disabled) == 0 && len(m.Overrides) == 0 && len(m.Providers) == 0 {
		b.fail(block, "write disabled, overrides or providers, or leave the block out", "says nothing")
	}
	for _, name := range m.Disabled {
		out.Overrides = append(out.Overrides, &telemetryv1alpha1.MetricsOverrides{Match: metric(name, ""), Disabled: wrapperspb.Bool(true)})
	}
	for i, o := range m.Overrides {
		if o.Disabled == nil && len(o.Tags) == 0 {
			b.fail(below(block, "overrides", index(i)), "write disabled or tags", "an override changes nothing")
		}
		override := &telemetryv1alpha1.MetricsOverrides{Match: metric(o.Metric, o.Mode), Disabled: boolValue(o.Disabled)}
		for _, name := range slices.Sorted(maps.Keys(o.Tags)) {
			if override.TagOverrides == nil {
				override.TagOverrides = map[string]*telemetryv1alpha1.MetricsOverrides_TagOverride{}
			}
			tag := &telemetryv1alpha1.MetricsOverrides_TagOverride{Value: o.Tags[name]}
			switch tag.Value {
			case "":
				b.fail(below(block, "overrides", index(i), "tags", name), "write a CEL expression, or remove to drop the tag", "a tag needs a value")
			case "remove":
				tag = &telemetryv1alpha1.MetricsOverrides_TagOverride{Operation: telemetryv1alpha1.MetricsOverrides_TagOverride_REMOVE}
			}
			override.TagOverrides[name] = tag
		}
		out.Overrides = append(out.Overrides, override)
	}
	return out
}

// metric selects one metric; without a name all.
func metric(name MetricName, mode string) *telemetryv1alpha1.MetricSelector {
	return &telemetryv1alpha1.MetricSelector{Mode: workloadMode(mode), MetricMatch: &telemetryv1alpha1.MetricSelector_Metric{
		Metric: telemetryv1alpha1.MetricSelector_IstioMetric(telemetryv1alpha1.MetricSelector_IstioMetric_value[string(name)]),
	}}
}

func workloadMode(mode string) telemetryv1alpha1.WorkloadMode {
	return telemetryv1alpha1.WorkloadMode(telemetryv1alpha1.WorkloadMode_value[mode])
}

func providers(names []string) []*telemetryv1alpha1.ProviderRef {
	var out []*telemetryv1alpha1.ProviderRef
	for _, name := range names {
		out = append(out, &telemetryv1alpha1.ProviderRef{Name: name})
	}
	return out
}

func boolValue(v *bool) *wrapperspb.BoolValue {
	if v == nil {
		return nil
	}
	return wrapperspb.Bool(*v)
}
