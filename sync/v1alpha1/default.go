package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Default fills in what the API server fills in from the CRD, for a Mooring that was read from a file.
func (m *Mooring) Default() {
	s := &m.Spec
	if s.Path == "" {
		s.Path = "."
	}
	for _, d := range []*metav1.Duration{&s.Interval, &s.Timeout} {
		if d.Duration == 0 {
			d.Duration = 5 * time.Minute
		}
	}
	if s.Prune.Enabled == nil {
		s.Prune.Enabled = new(true)
	}
	if s.Prune.MaxPercent == nil {
		s.Prune.MaxPercent = new(int32(25))
	}
	if s.Prune.MaxObjects == nil {
		s.Prune.MaxObjects = new(int32(50))
	}
	if s.Drift == nil {
		s.Drift = &Drift{}
	}
	if s.Drift.Mode == "" {
		s.Drift.Mode = DriftCorrect
	}
	if s.Check != nil && s.Check.FailOn == "" {
		s.Check.FailOn = CheckError
	}
	s.Propagation.setDefaults()
	if v := s.Source.Verify; v != nil {
		v.Mode = cmp.Or(v.Mode, VerifyHead)
	}
	if p := s.Promotion; p != nil {
		p.Mode, p.Approval = cmp.Or(p.Mode, PromotionFollow), cmp.Or(p.Approval, ApprovalAutomatic)
	}
	s.OnFailure = cmp.Or(s.OnFailure, OnFailureKeep)
	if s.DeletionPolicy == "" {
		s.DeletionPolicy = DeletionPrune
	}
}

func (p *Propagation) setDefaults() {
	if p.Ask == "" {
		p.Ask = AskPortForward
	}
	if p.Pause.Duration == 0 {
		p.Pause.Duration = 5 * time.Second
	}
	if p.Timeout.Duration == 0 {
		p.Timeout.Duration = time.Minute
	}
}
