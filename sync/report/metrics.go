package report

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Metrics of all Moorings of an agent. Every series carries the Mooring's namespace and name and goes with it.
type Metrics struct {
	series

	passes      *family
	ready       *family
	suspended   *family
	stages      *family
	changes     *family
	corrections *family
	drifted     *family
	fights      *family
	objects     *family
	findings    *family
	notChecked  *family
	unmanaged   *family
	finished    *family
	answered    *family
	interval    *family
	gitInterval *family
	window      *family
	promoted    *family
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{series: series{of: map[mooringName]*figures{}, labels: map[label]*dto.LabelPair{}}}
	counter := func(name, help, label string) *family { return m.family(prometheus.CounterValue, name, help, label) }
	gauge := func(name, help, label string) *family { return m.family(prometheus.GaugeValue, name, help, label) }
	m.passes = counter("mooring_passes_total",
		"Passes by the reason of the Ready condition that they ended with.", "reason")
	m.ready = gauge("mooring_ready",
		"1 when the newest commit is in force, else 0; the label reason is that of the Ready condition.", "reason")
	m.suspended = gauge("mooring_suspended",
		"1 while the Mooring is suspended.", "")
	m.stages = m.family(prometheus.UntypedValue, "mooring_stage_duration_seconds", "Time that a stage of a pass needed, in seconds. A stage that had nothing to do is not observed.",
		"stage", prometheus.ExponentialBuckets(0.005, 3, 10)...)
	m.changes = counter("mooring_changes_total",
		"Objects written, by action: create, update, replace, delete.", "action")
	m.corrections = counter("mooring_drift_corrections_total",
		"Objects that somebody had changed and that were put back.", "")
	m.drifted = gauge("mooring_drifted_objects",
		"Objects that differ from the applied revision: only told of, fought over, or not put right.", "")
	m.fights = gauge("mooring_fights",
		"Fields that Mooring and somebody else set by turns, and that are put back ever more slowly.", "")
	m.objects = gauge("mooring_objects",
		"Objects of the applied revision.", "")
	m.findings = gauge("mooring_findings",
		"Findings about the newest revision that nobody accepted, by level.", "level")
	m.notChecked = gauge("mooring_not_checked",
		"Questions of the check about the newest revision that could not be answered, such as for want of a right.", "")
	m.unmanaged = gauge("mooring_unmanaged_objects",
		"Objects of Istio's kinds that no Mooring owns and that bear on hosts or workloads of this one.", "")
	m.finished = gauge("mooring_last_pass_timestamp_seconds",
		"When the last pass was over, as Unix time in seconds.", "")
	m.answered = gauge("mooring_git_last_answer_timestamp_seconds",
		"When Git said last which commit is the newest, as Unix time in seconds.", "")
	m.interval = gauge("mooring_interval_seconds",
		"How often a pass is to be made: spec.interval.", "")
	m.gitInterval = gauge("mooring_git_interval_seconds",
		"How often Git is to be asked: spec.interval, or the time between the slots of spec.schedule around now.", "")
	m.window = gauge("mooring_window_open",
		"1 while new revisions may be applied, 0 while spec.windows holds them. Only of Moorings that have windows.", "")
	m.promoted = gauge("mooring_promoted",
		"1 when nothing waits to be promoted here, else 0; the label reason is that of the condition Promoted. Only of Moorings that follow another one.", "reason")
	reg.MustRegister(m)
	return m
}

// Forget drops every series of a Mooring that is gone.
func (m *Metrics) Forget(namespace, name string) { m.forget(namespace, name) }

// Observe counts a pass.
func (m *Metrics) Observe(namespace, name string, out Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.figures(namespace, name)
	f.add(m.passes, out.Reason, 1)
	f.drop(m.ready)
	f.set(m.ready, out.Reason, number(out.Reason == v1alpha1.ReasonApplied))
	f.set(m.suspended, "", number(out.Reason == v1alpha1.ReasonSuspended))
	f.set(m.finished, "", float64(out.Finished.UnixNano())/1e9)
	if !out.GitAnswered.IsZero() {
		f.set(m.answered, "", float64(out.GitAnswered.UnixNano())/1e9)
	}
	if out.Interval > 0 {
		f.set(m.interval, "", out.Interval.Seconds())
	}
	if out.GitInterval > 0 {
		f.set(m.gitInterval, "", out.GitInterval.Seconds())
	}
	m.observeWindow(f, out)
	m.observePromotion(f, out)
	for stage, took := range out.Took {
		f.observe(m.stages, string(stage), took.Seconds())
	}
	if !out.Newest.IsZero() {
		f.drop(m.findings)
		levels, notChecked := found(out)
		for _, level := range levels {
			f.add(m.findings, level, 1)
		}
		f.set(m.notChecked, "", float64(notChecked))
	}
	if out.LookedBeside {
		f.set(m.unmanaged, "", float64(len(out.Unmanaged)))
	}
	if out.Result == nil {
		return
	}
	f.set(m.objects, "", float64(out.Result.Objects))
	counts := out.Result.Counts()
	f.add(m.changes, string(apply.Create), float64(counts.Create))
	f.add(m.changes, string(apply.Update), float64(counts.Update))
	f.add(m.changes, string(apply.Replace), float64(counts.Replace))
	f.add(m.changes, string(apply.Delete), float64(counts.Delete))
	f.add(m.corrections, "", float64(objectsOf(out.Corrected())))
	f.set(m.drifted, "", float64(objectsOf(out.Drifting())))
	f.set(m.fights, "", float64(len(out.Fights)))
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
func (m *Metrics) observeWindow(f *figures, out Outcome) {
	if out.Window == nil {
		f.drop(m.window)
		return
	}
	f.set(m.window, "", number(*out.Window))
}

// observePromotion drops the series of a Mooring that follows nobody any more.
func (m *Metrics) observePromotion(f *figures, out Outcome) {
	if w := out.Promotion; w != nil || !out.Follows {
		f.drop(m.promoted)
		if w != nil {
			f.set(m.promoted, w.Reason, number(w.Reason == v1alpha1.ReasonUpToDate))
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
