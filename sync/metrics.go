package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/sync/metric"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// metrics asks Prometheus. It gives what speaks against a promotion, also that nobody could be asked; empty when nothing does.
func (p *pass) metrics(ctx context.Context) string {
	var against []string
	for i, m := range p.mooring.Spec.Promotion.Metrics {
		answer, err := p.measure(ctx, fmt.Sprintf("spec.promotion.metrics[%d]", i), m)
		switch {
		case err != nil:
			against = append(against, err.Error())
		case !answer.Good:
			against = append(against, answer.Words)
		}
	}
	return strings.Join(against, "; ")
}

// measure asks one question, which may take its time.
func (p *pass) measure(ctx context.Context, field string, m v1alpha1.MetricGate) (metric.Answer, error) {
	q := metric.Query{Name: m.Name, Address: m.Address, Expr: m.Query, Soak: p.mooring.Spec.Promotion.Soak.Duration}
	for bound, said := range map[*string]*v1alpha1.Decimal{&q.Min: m.Min, &q.Max: m.Max} {
		if said != nil {
			*bound = string(*said)
		}
	}
	if m.SecretRef != nil {
		data, err := p.secret(ctx, m.SecretRef.Name, field+".secretRef")
		if err == nil {
			q.Auth, err = metric.AuthOf(data)
		}
		if err != nil {
			return metric.Answer{}, err
		}
	}
	p.slots.give()
	defer p.slots.take()
	answer, err := metric.Ask(ctx, q)
	if hint := metric.HintOf(err); hint != "" {
		return answer, errors.New(err.Error() + "; " + hint)
	}
	return answer, err
}
