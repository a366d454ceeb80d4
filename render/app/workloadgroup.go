package app

import (
	"maps"

	networking "istio.io/api/networking/v1alpha3"
)

// WorkloadGroup is a template for machines outside of Kubernetes, with which they register themselves.
type WorkloadGroup struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Labels of the machines. Default: spec.selector. Becomes WorkloadGroup spec.metadata.labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the machines. Becomes WorkloadGroup spec.metadata.annotations.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ServiceAccount that they act as, in the same namespace. Becomes WorkloadGroup spec.template.serviceAccount.
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Ports by name of the Service's port. Becomes WorkloadGroup spec.template.ports.
	// +optional
	Ports map[string]uint32 `json:"ports,omitempty"`
	// Network that they are in. Becomes WorkloadGroup spec.template.network.
	// +optional
	Network string `json:"network,omitempty"`
	// Locality as region/zone/subzone. Becomes WorkloadGroup spec.template.locality.
	// +optional
	Locality string `json:"locality,omitempty"`
	// Weight is the share of the traffic of each. Default: 1, by Istio. Becomes WorkloadGroup spec.template.weight.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Weight uint32 `json:"weight,omitempty"`
	// Probe says when a machine is ready for traffic. Becomes WorkloadGroup spec.probe.
	// +optional
	Probe *Probe `json:"probe,omitempty"`

	Escape `json:",inline"`
}

// Probe says when a machine is ready for traffic.
//
// +kubebuilder:validation:XValidation:rule="[has(self.httpGet), has(self.tcp), has(self.exec)].filter(x, x).size() == 1",message="write exactly one of httpGet, tcp and exec"
type Probe struct {
	// HTTPGet asks for a path. Becomes WorkloadGroup spec.probe.httpGet.
	// +optional
	HTTPGet *HTTPProbe `json:"httpGet,omitempty"`
	// TCP opens a connection. Becomes WorkloadGroup spec.probe.tcpSocket.
	// +optional
	TCP *TCPProbe `json:"tcp,omitempty"`
	// Exec runs a command. Becomes WorkloadGroup spec.probe.exec.
	// +optional
	Exec *ExecProbe `json:"exec,omitempty"`
	// InitialDelaySeconds before the first probe. Default: 0. Becomes WorkloadGroup spec.probe.initialDelaySeconds.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`
	// PeriodSeconds between probes. Default: 10, by Istio. Becomes WorkloadGroup spec.probe.periodSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// TimeoutSeconds of a probe. Default: 1, by Istio. Becomes WorkloadGroup spec.probe.timeoutSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// SuccessThreshold is how many good probes make it ready. Default: 1, by Istio. Becomes WorkloadGroup spec.probe.successThreshold.
	// +optional
	// +kubebuilder:validation:Minimum=1
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
	// FailureThreshold is how many bad probes make it unready. Default: 3, by Istio. Becomes WorkloadGroup spec.probe.failureThreshold.
	// +optional
	// +kubebuilder:validation:Minimum=1
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// HTTPProbe asks for a path.
type HTTPProbe struct {
	// Path that is asked for. Default: /, by Istio. Becomes WorkloadGroup spec.probe.httpGet.path.
	// +optional
	Path string `json:"path,omitempty"`
	// Port that is asked. Becomes WorkloadGroup spec.probe.httpGet.port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port"`
	// Host that is asked. Default: the machine. Becomes WorkloadGroup spec.probe.httpGet.host.
	// +optional
	Host string `json:"host,omitempty"`
	// Scheme is HTTP or HTTPS. Default: HTTP, by Istio. Becomes WorkloadGroup spec.probe.httpGet.scheme.
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	Scheme string `json:"scheme,omitempty"`
}

// TCPProbe opens a connection.
type TCPProbe struct {
	// Port that is opened. Becomes WorkloadGroup spec.probe.tcpSocket.port.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port"`
	// Host that is asked. Default: the machine. Becomes WorkloadGroup spec.probe.tcpSocket.host.
	// +optional
	Host string `json:"host,omitempty"`
}

// ExecProbe runs a command.
type ExecProbe struct {
	// Command and its arguments; no shell. Becomes WorkloadGroup spec.probe.exec.command.
	// +required
	// +kubebuilder:validation:MinItems=1
	Command []string `json:"command"`
}

func (b *builder) workloadGroups() {
	for i, w := range b.app.Spec.WorkloadGroups {
		block := []string{"workloadGroups", index(i)}
		b.rawAlone(w.Escape, w, block, "name")
		labels := maps.Clone(w.Labels)
		if len(labels) == 0 {
			labels = maps.Clone(b.selector())
		}
		b.emit(workloadGroupKind, w.Name, &networking.WorkloadGroup{
			Metadata: &networking.WorkloadGroup_ObjectMeta{Labels: labels, Annotations: w.Annotations},
			Template: &networking.WorkloadEntry{
				Ports: w.Ports, Network: w.Network, Locality: w.Locality, Weight: w.Weight, ServiceAccount: w.ServiceAccount,
			},
			Probe: readiness(w.Probe),
		}, w.Escape, block...)
	}
}

func readiness(p *Probe) *networking.ReadinessProbe {
	if p == nil {
		return nil
	}
	out := &networking.ReadinessProbe{
		InitialDelaySeconds: p.InitialDelaySeconds, PeriodSeconds: p.PeriodSeconds, TimeoutSeconds: p.TimeoutSeconds,
		SuccessThreshold: p.SuccessThreshold, FailureThreshold: p.FailureThreshold,
	}
	switch {
	case p.HTTPGet != nil:
		out.HealthCheckMethod = &networking.ReadinessProbe_HttpGet{HttpGet: &networking.HTTPHealthCheckConfig{
			Path: p.HTTPGet.Path, Port: p.HTTPGet.Port, Host: p.HTTPGet.Host, Scheme: p.HTTPGet.Scheme,
		}}
	case p.TCP != nil:
		out.HealthCheckMethod = &networking.ReadinessProbe_TcpSocket{TcpSocket: &networking.TCPHealthCheckConfig{Port: p.TCP.Port, Host: p.TCP.Host}}
	case p.Exec != nil:
		out.HealthCheckMethod = &networking.ReadinessProbe_Exec{Exec: &networking.ExecHealthCheckConfig{Command: p.Exec.Command}}
	}
	return out
}
