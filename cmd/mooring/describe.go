package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// describer writes the description of one Mooring. It remembers the first error, so that its steps need not.
type describer struct {
	w     io.Writer
	color palette
	now   time.Time
	err   error
}

// describe writes all that is known about a Mooring, the answer to "is it well?" first.
func describe(w io.Writer, color palette, m *v1alpha1.Mooring, now time.Time) error {
	d := &describer{w: w, color: color, now: now}
	d.head(m)
	d.conditions(m)
	d.findings(m)
	d.drift(m)
	d.fights(m)
	d.corrections(m)
	d.unmanaged(m)
	d.promotion(m)
	d.history(m)
	return d.err
}

func (d *describer) printf(format string, args ...any) {
	if d.err == nil {
		_, d.err = fmt.Fprintf(d.w, format, args...)
	}
}

func (d *describer) field(name, value string) {
	if value != "" {
		d.printf("%-12s %s\n", name+":", value)
	}
}

func (d *describer) title(text string) {
	d.printf("\n%s\n", d.color.bold(text))
}

func (d *describer) table(t *table) {
	if d.err == nil {
		d.err = t.write(d.w)
	}
}

func (d *describer) head(m *v1alpha1.Mooring) {
	d.printf("%s\n", d.color.bold(fmt.Sprintf("Mooring %s/%s", m.Namespace, m.Name)))
	ready := readyOf(m)
	state := string(ready.Status)
	if ready.Reason != "" {
		state += " (" + ready.Reason + ")"
	}
	d.field("Ready", d.color.ofStatus(ready.Status)(state))
	for line := range strings.Lines(ready.Message) {
		d.printf("%13s%s\n", "", strings.TrimRight(line, "\n"))
	}
	if m.Spec.Suspend {
		d.field("Suspended", fmt.Sprintf("yes; mooring resume %s -n %s ends it", m.Name, m.Namespace))
	}
	if pin := m.Spec.Pin; pin != nil {
		d.field("Pinned", fmt.Sprintf("%s%s; mooring unpin %s -n %s ends it", shortRevision(pin.Revision), inBrackets(oneLine(pin.Reason)), m.Name, m.Namespace))
	}
	if rb := m.Status.Rollback; rb != nil {
		d.field("Rolled back", fmt.Sprintf("from %s%s to %s; the next commit is taken up as usual", shortRevision(rb.Bad), inBrackets(oneLine(rb.Why)), shortRevision(rb.To)))
	}
	if m.DeletionTimestamp != nil {
		d.field("Deleted", fmt.Sprintf("%s ago; deletionPolicy %s is being carried out", d.ago(*m.DeletionTimestamp), m.Spec.DeletionPolicy))
	}
	d.field("Source", m.Spec.Source.URL)
	d.field("Ref", refOf(m.Spec.Source.Ref))
	d.field("Path", m.Spec.Path)
	d.field("Interval", m.Spec.Interval.Duration.String())
	d.field("Applied", orDash(m.Status.LastAppliedRevision))
	if m.Status.LastAttemptedRevision != m.Status.LastAppliedRevision {
		d.field("Attempted", m.Status.LastAttemptedRevision)
	}
	if m.Status.Inventory != nil {
		d.field("Objects", fmt.Sprintf("%d, labelled applyset.kubernetes.io/part-of=%s", m.Status.Inventory.Objects, m.Status.Inventory.ID))
	}
	if m.Status.ObservedGeneration != 0 && m.Status.ObservedGeneration != m.Generation {
		d.field("Note", "the spec was changed, and no agent has looked at it since")
	}
}

// inBrackets is for a reason that may not have been given.
func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// ofCondition is the colour of a condition: Ready and Healthy are good when True, the others speak of trouble. That something waits to be promoted is none.
func (p palette) ofCondition(c metav1.Condition) func(string) string {
	switch c.Type {
	case v1alpha1.ConditionReady, v1alpha1.ConditionHealthy:
		return p.ofStatus(c.Status)
	case v1alpha1.ConditionPromoted:
		if c.Status == metav1.ConditionTrue {
			return p.green
		}
		return p.yellow
	}
	if c.Status == metav1.ConditionTrue {
		return p.yellow
	}
	return func(s string) string { return s }
}

func (d *describer) conditions(m *v1alpha1.Mooring) {
	if len(m.Status.Conditions) == 0 {
		return
	}
	d.title("Conditions")
	t := &table{head: []string{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}, width: widthOf(d.w)}
	for _, name := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
		v1alpha1.ConditionDrifted, v1alpha1.ConditionHealthy, v1alpha1.ConditionPromoted, v1alpha1.ConditionPinned,
	} {
		c := meta.FindStatusCondition(m.Status.Conditions, name)
		if c == nil {
			continue
		}
		message := oneLine(c.Message)
		if c.Message == readyOf(m).Message {
			message = "(as above)" // the longest text there is, and it is said already
		}
		t.add(plain(c.Type), cell{text: string(c.Status), paint: d.color.ofCondition(*c)}, plain(c.Reason),
			plain(d.ago(c.LastTransitionTime)), plain(message))
	}
	d.table(t)
}

func (d *describer) findings(m *v1alpha1.Mooring) {
	if len(m.Status.Findings) == 0 {
		return
	}
	d.title(fmt.Sprintf("Findings about %s%s", shortRevision(m.Status.LastAttemptedRevision), of(len(m.Status.Findings), m.Status.FindingCount)))
	t := &table{head: []string{"LEVEL", "CODE", "OBJECT", "FILE", "MESSAGE"}}
	for _, f := range m.Status.Findings {
		t.add(cell{text: f.Level, paint: d.color.ofLevel(f.Level)}, plain(f.Code), plain(f.Object), plain(f.File), plain(f.Message))
	}
	d.table(t)
}

// ofLevel is the colour of a finding's level.
func (p palette) ofLevel(level string) func(string) string {
	switch level {
	case "Error":
		return p.red
	case "Warning":
		return p.yellow
	}
	return func(s string) string { return s }
}

func (d *describer) drift(m *v1alpha1.Mooring) {
	if len(m.Status.Drift) == 0 {
		return
	}
	d.title("Drift" + of(len(m.Status.Drift), m.Status.DriftCount))
	t := &table{head: []string{"OBJECT", "FIELD", "WANT", "LIVE", "WHO", "SINCE", "MODE"}}
	for _, e := range m.Status.Drift {
		t.add(plain(e.Object), plain(orDash(e.Field)), plain(orDash(e.Want)), plain(orDash(e.Live)),
			plain(whoOf(e.Manager, e.Operation, e.ChangedAt, d.now)), plain(since(e.Since, d.now)), plain(modeText(modeOf(m), e.Reason)))
	}
	d.table(t)
}

func (d *describer) fights(m *v1alpha1.Mooring) {
	if len(m.Status.Fights) == 0 {
		return
	}
	d.title("Fights")
	t := &table{head: []string{"OBJECT", "FIELD", "WITH", "PUT BACK", "SINCE", "NEXT"}}
	for _, e := range m.Status.Fights {
		next := "when it is changed again"
		if e.Next.After(d.now) {
			next = "not before " + e.Next.Format(time.TimeOnly)
		}
		t.add(plain(e.Object), plain(orDash(e.Field)), plain(cmp.Or(e.Manager, unknown)), plain(fmt.Sprintf("%d times", e.Corrections)), plain(d.ago(e.Since)), plain(next))
	}
	d.table(t)
}

func (d *describer) corrections(m *v1alpha1.Mooring) {
	if len(m.Status.Corrections) == 0 {
		return
	}
	d.title("Put back lately")
	t := &table{head: []string{"WHEN", "OBJECT", "FIELD", "FROM", "TO", "WHO"}}
	for _, e := range m.Status.Corrections {
		t.add(plain(e.CorrectedAt.Format(time.RFC3339)), plain(e.Object), plain(orDash(e.Field)), plain(orDash(e.Live)), plain(orDash(e.Want)),
			plain(whoOf(e.Manager, e.Operation, e.ChangedAt, d.now)))
	}
	d.table(t)
}

func (d *describer) unmanaged(m *v1alpha1.Mooring) {
	if len(m.Status.Unmanaged) == 0 {
		return
	}
	d.title("Unmanaged" + of(len(m.Status.Unmanaged), m.Status.UnmanagedCount))
	t := &table{head: []string{"OBJECT", "BEARS ON", "MADE BY", "AGE", "WHY"}}
	for _, e := range m.Status.Unmanaged {
		t.add(plain(e.Object), plain(e.BearsOn), plain(orDash(strings.Join(e.Managers, ", "))), plain(since(e.Created, d.now)), plain(e.Why))
	}
	d.table(t)
}

func (d *describer) promotion(m *v1alpha1.Mooring) {
	if m.Spec.Promotion == nil || len(candidatesOf(m)) == 0 {
		return
	}
	d.title("On their way from Mooring " + followedBy(m).String())
	t := &table{head: []string{"REVISION", "SUBJECT", "STATE", "WAITS FOR"}}
	for _, c := range candidatesOf(m) {
		t.add(plain(shortRevision(c.Revision)), plain(orDash(cut(oneLine(c.Subject), maxSubject))), plain(c.State), plain(orDash(oneLine(c.WaitsFor))))
	}
	d.table(t)
}

func (d *describer) history(m *v1alpha1.Mooring) {
	if len(m.Status.History) == 0 {
		return
	}
	d.title("History")
	t := &table{head: []string{"APPLIED", "REVISION", "CREATED", "CONFIGURED", "DELETED", "BY"}}
	for _, h := range m.Status.History {
		by := orDash(h.By)
		if h.Reason != "" {
			by += ": " + oneLine(h.Reason)
		}
		t.add(plain(h.AppliedAt.Format(time.RFC3339)), plain(shortRevision(h.Revision)),
			plain(fmt.Sprint(h.Created)), plain(fmt.Sprint(h.Configured)), plain(fmt.Sprint(h.Deleted)), plain(by))
	}
	d.table(t)
}

// of says how many there are in all when not all are shown.
func of(shown int, all int32) string {
	if int(all) <= shown {
		return ""
	}
	return fmt.Sprintf(" (%d of %d)", shown, all)
}

func (d *describer) ago(t metav1.Time) string {
	return duration.HumanDuration(d.now.Sub(t.Time))
}
