package sync

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// ignoreRules of a Mooring.
func ignoreRules(m *v1alpha1.Mooring) ([]apply.IgnoreRule, error) {
	if m.Spec.Drift == nil {
		return nil, nil
	}
	var rules []apply.IgnoreRule
	for i, r := range m.Spec.Drift.Ignore {
		rule := apply.IgnoreRule{Paths: r.Paths, Target: apply.Target{
			Group: r.Target.Group, Kind: r.Target.Kind, Namespace: r.Target.Namespace, Name: r.Target.Name,
		}}
		if r.Target.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(r.Target.LabelSelector)
			if err != nil {
				return nil, fmt.Errorf("read spec.drift.ignore[%d].target.labelSelector: %w", i, err)
			}
			rule.Target.Labels = selector
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
