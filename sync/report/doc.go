// Package report turns the outcome of a pass into what people and machines read: the status and conditions of a
// Mooring, Kubernetes Events and Prometheus metrics.
//
// It sees an Outcome and nothing else, so that what is reported is what was done. Nothing is written when nothing
// happened: a status that stays the same costs no request, and an Event is sent when something was changed or
// when the reason or the message of the Ready condition is a new one, not at every pass. Drift that is left as it is is
// told when it is new, and a fight when it begins and when it is over (drift.go).
//
// Conditions follow kstatus (Ready, Reconciling, Stalled). Reasons of Ready are
// the closed list of v1alpha1. A message says what happened, to which object or
// file, and how to mend it; it holds no duration, and no time but the one at
// which a window opens, so that it does not flap, and no secret: errors and plans
// come masked from the packages that make them.
package report
