package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronExpression says when something comes round: five fields (minute, hour, day of month, month, day of week), or @yearly, @monthly, @weekly, @daily,
// @hourly, or @every with a duration of at least 1m.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)^ *(cron_)?tz=')",message="the time zone does not go into the expression: write it in timeZone"
// +kubebuilder:validation:XValidation:rule="self.matches('^ *@') || self.matches('^ *([0-9*?/,-]+ +){3}[0-9A-Za-z*?/,-]+ +[0-9A-Za-z*?/,-]+ *$') || self.matches('(?i)^ *(cron_)?tz=')",message="an expression has five fields: minute, hour, day of month, month, day of week, such as 30 2 * * MON-FRI"
// +kubebuilder:validation:XValidation:rule="!self.matches('^ *@') || self.matches('^ *@(yearly|annually|monthly|weekly|daily|midnight|hourly|every +[0-9hms]+) *$')",message="the words are @yearly, @monthly, @weekly, @daily, @hourly and @every 30m"
type CronExpression string

// TimeZone is a name of the IANA database.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",message="timeZone is a name of the IANA database, such as Europe/Berlin or UTC"
type TimeZone string

// Window is a time that comes round, in which new revisions may be applied, or may not.
type Window struct {
	// Allow or Deny. While a Deny is on, no new revision is applied. Where there is an Allow, none is applied outside of all of them.
	// +required
	Kind WindowKind `json:"kind"`
	// When the window begins, as a cron expression: 0 17 * * FRI.
	// +required
	Schedule CronExpression `json:"schedule"`
	// How long it lasts, as a Go duration of at most 744h. It is elapsed time: 63h are 63 hours also over the weekend on which the clocks change. One that is longer
	// than the time from one beginning to the next goes on without a gap.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('1s') && duration(self) <= duration('744h')",message="duration is a duration from 1s to 744h, such as 90m or 63h; to hold new commits for longer, use suspend"
	Duration metav1.Duration `json:"duration"`
	// Where the times of day of schedule are; without it, spec.timeZone.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`
}

// WindowKind is what a window does.
//
// +kubebuilder:validation:Enum=Allow;Deny
type WindowKind string

// The kinds of windows.
const (
	// WindowAllow lets new revisions be applied while it is on, and not outside.
	WindowAllow WindowKind = "Allow"
	// WindowDeny lets no new revision be applied while it is on.
	WindowDeny WindowKind = "Deny"
)
