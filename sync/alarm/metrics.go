package alarm

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics of all Alarms of an agent. Every series carries the Alarm's namespace and name and goes with it.
type Metrics struct {
	sent, failed, dropped *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"namespace", "name"})
		reg.MustRegister(c)
		return c
	}
	return &Metrics{
		sent:    counter("mooring_alarms_sent_total", "Messages of an Alarm that were sent."),
		failed:  counter("mooring_alarms_failed_total", "Tries to send a message of an Alarm that failed; most are tried again."),
		dropped: counter("mooring_alarms_dropped_total", "Things that happened and that an Alarm never told: there were too many, or no try to send them succeeded."),
	}
}

// begin shows an Alarm with zeros, so that a rate has something to start from.
func (m *Metrics) begin(key types.NamespacedName) {
	for _, c := range m.all() {
		c.WithLabelValues(key.Namespace, key.Name)
	}
}

func (m *Metrics) forget(key types.NamespacedName) {
	for _, c := range m.all() {
		c.DeleteLabelValues(key.Namespace, key.Name)
	}
}

func (m *Metrics) all() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.sent, m.failed, m.dropped}
}
