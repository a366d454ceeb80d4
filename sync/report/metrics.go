package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Metrics of all Moorings of an agent. Every series carries the Mooring's namespace and name and goes with it.
type Metrics struct {
	passes      *prometheus.CounterVec
	ready       *prometheus.GaugeVec
	suspended   *prometheus.GaugeVec
	stages      *prometheus.HistogramVec
	changes     *prometheus.CounterVec
	corrections *prometheus.CounterVec
	drifted     *prometheus.GaugeVec
	fights      *prometheus.GaugeVec
	objects     *prometheus.GaugeVec
	findings    *prometheus.GaugeVec
	notChecked  *prometheus.GaugeVec
	unmanaged   *prometheus.GaugeVec
	finished    *prometheus.GaugeVec
	answered    *prometheus.GaugeVec
	interval    *prometheus.GaugeVec
	gitInterval *prometheus.GaugeVec
	window      *prometheus.GaugeVec
	promoted    *prometheus.GaugeVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	unit := []string{"namespace", "name"}
	with := func(more ...string) []string { return append(append([]string{}, unit...), more...) }
	m := &Metrics{
		passes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_passes_total", Help: "Passes by the reason of the Ready condition that they ended with.",
		}, with("reason")),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_ready", Help: "1 when the newest commit is in force, else 0; the label reason is that of the Ready condition.",
		}, with("reason")),
		suspended: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_suspended", Help: "1 while the Mooring is suspended.",
		}, unit),
		stages: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mooring_stage_duration_seconds", Help: "Time that a stage of a pass needed, in seconds. A stage that had nothing to do is not observed.",
			Buckets: prometheus.ExponentialBuckets(0.005, 3, 10),
		}, with("stage")),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_changes_total", Help: "Objects written, by action: create, update, replace, delete.",
		}, with("action")),
		corrections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mooring_drift_corrections_total", Help: "Objects that somebody had changed and that were put back.",
		}, unit),
		drifted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_drifted_objects", Help: "Objects that differ from the applied revision: only told of, fought over, or not put right.",
		}, unit),
		fights: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_fights", Help: "Fields that Mooring and somebody else set by turns, and that are put back ever more slowly.",
		}, unit),
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_objects", Help: "Objects of the applied revision.",
		}, unit),
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_findings", Help: "Findings about the newest revision that nobody accepted, by level.",
		}, with("level")),
		notChecked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_not_checked", Help: "Questions of the check about the newest revision that could not be answered, such as for want of a right.",
		}, unit),
		unmanaged: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_unmanaged_objects", Help: "Objects of Istio's kinds that no Mooring owns and that bear on hosts or workloads of this one.",
		}, unit),
		finished: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mooring_last_pass_timestamp_seconds", Help: "When the last pass was over, as Unix time in seconds.",
		}, unit),
	}
	m.answered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mooring_git_last_answer_timestamp_seconds", Help: "When Git said last which commit is the newest, as Unix time in seconds.",
	}, unit)
	m.interval = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mooring_interval_seconds", Help: "How often a pass is to be made: spec.interval.",
	}, unit)
	m.gitInterval = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mooring_git_interval_seconds", Help: "How often Git is to be asked: spec.interval, or the time between the slots of spec.schedule around now.",
	}, unit)
	m.window = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mooring_window_open", Help: "1 while new revisions may be applied, 0 while spec.windows holds them. Only of Moorings that have windows.",
	}, unit)
	m.promoted = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mooring_promoted", Help: "1 when nothing waits to be promoted here, else 0; the label reason is that of the condition Promoted. Only of Moorings that follow another one.",
	}, with("reason"))
	for _, c := range m.all() {
		reg.MustRegister(c)
	}
	return m
}

// collector is a vector whose series of one Mooring can be dropped.
type collector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

func (m *Metrics) all() []collector {
	return []collector{m.passes, m.ready, m.suspended, m.stages, m.changes, m.corrections, m.drifted, m.fights, m.objects, m.findings, m.notChecked, m.unmanaged, m.finished, m.answered, m.interval, m.gitInterval, m.window, m.promoted}
}

// Forget drops every series of a Mooring that is gone.
func (m *Metrics) Forget(namespace, name string) {
	for _, c := range m.all() {
		c.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
	}
}

// Observe counts a pass.
func (m *Metrics) Observe(namespace, name string, out Outcome) {
	m.passes.WithLabelValues(namespace, name, out.Reason).Inc()
	m.ready.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
	m.ready.WithLabelValues(namespace, name, out.Reason).Set(number(out.Reason == v1alpha1.ReasonApplied))
	m.suspended.WithLabelValues(namespace, name).Set(number(out.Reason == v1alpha1.ReasonSuspended))
	m.finished.WithLabelValues(namespace, name).Set(float64(out.Finished.UnixNano()) / 1e9)
	if !out.GitAnswered.IsZero() {
		m.answered.WithLabelValues(namespace, name).Set(float64(out.GitAnswered.UnixNano()) / 1e9)
	}
	if out.Interval > 0 {
		m.interval.WithLabelValues(namespace, name).Set(out.Interval.Seconds())
	}
	if out.GitInterval > 0 {
		m.gitInterval.WithLabelValues(namespace, name).Set(out.GitInterval.Seconds())
	}
	m.observeWindow(namespace, name, out)
	m.observePromotion(namespace, name, out)
	for stage, took := range out.Took {
		m.stages.WithLabelValues(namespace, name, string(stage)).Observe(took.Seconds())
	}
	if !out.Newest.IsZero() {
		m.findings.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
		levels, notChecked := found(out)
		for _, level := range levels {
			m.findings.WithLabelValues(namespace, name, level).Inc()
		}
		m.notChecked.WithLabelValues(namespace, name).Set(float64(notChecked))
	}
	if out.LookedBeside {
		m.unmanaged.WithLabelValues(namespace, name).Set(float64(len(out.Unmanaged)))
	}
	if out.Result == nil {
		return
	}
	m.objects.WithLabelValues(namespace, name).Set(float64(out.Result.Objects))
	counts := out.Result.Counts()
	for action, n := range map[apply.Action]int{
		apply.Create: counts.Create, apply.Update: counts.Update, apply.Replace: counts.Replace, apply.Delete: counts.Delete,
	} {
		m.changes.WithLabelValues(namespace, name, string(action)).Add(float64(n))
	}
	m.corrections.WithLabelValues(namespace, name).Add(float64(objectsOf(out.Corrected())))
	m.drifted.WithLabelValues(namespace, name).Set(float64(objectsOf(out.Drifting())))
	m.fights.WithLabelValues(namespace, name).Set(float64(len(out.Fights)))
}

// found gives the level of each finding that nobody accepted, and how many questions could not be answered.
func found(out Outcome) (levels []string, notChecked int) {
	if s := out.Standing; s != nil {
		for _, f := range s.Findings {
			if f.Suppressed == "" {
				levels = append(levels, f.Level)
			}
		}
		return levels, int(s.NotCheckedCount)
	}
	for _, f := range out.Findings {
		if f.Suppressed == nil {
			levels = append(levels, string(f.Level))
		}
	}
	return levels, len(out.NotChecked)
}

// observeWindow drops the series of a Mooring that has no windows any more. Suspended, they say nothing.
func (m *Metrics) observeWindow(namespace, name string, out Outcome) {
	if out.Window == nil {
		m.window.DeleteLabelValues(namespace, name)
		return
	}
	m.window.WithLabelValues(namespace, name).Set(number(*out.Window))
}

// observePromotion drops the series of a Mooring that follows nobody any more.
func (m *Metrics) observePromotion(namespace, name string, out Outcome) {
	if w := out.Promotion; w != nil || !out.Follows {
		m.promoted.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
		if w != nil {
			m.promoted.WithLabelValues(namespace, name, w.Reason).Set(number(w.Reason == v1alpha1.ReasonUpToDate))
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
