package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// WebhookError says that the API server had to ask an admission webhook about an object, and got no answer. The commit has no part in it: the
// object may be right or wrong, and is tried again.
type WebhookError struct {
	// Webhook is its name in the configuration.
	Webhook string
	// Service that it calls, namespace and name; empty for one that is called by its URL.
	Service types.NamespacedName
	// Cause in words that stay the same for as long as it does.
	Cause string

	err error
}

// Error says whose fault it is, and where to look.
func (e *WebhookError) Error() string {
	where := ""
	if e.Service.Name != "" {
		where = fmt.Sprintf("; look at Service/%s and the pods behind it", e.Service)
	}
	return fmt.Sprintf("the cluster has to ask webhook %s about it, which does not answer: %s. This is no fault of the commit, and is tried again%s",
		e.Webhook, e.Cause, where)
}

// Unwrap gives what the API server said.
func (e *WebhookError) Unwrap() error {
	return e.err
}

var (
	uncalledWebhook = regexp.MustCompile(`failed calling webhook "([^"]*)"[:;] (.*)`)
	webhookService  = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc[:/]`)
	// A request in words that Go puts before the cause, and that name a time-out which may differ.
	webhookRequest = regexp.MustCompile(`^failed to call webhook: (?:Post "[^"]*": )?`)
	// An address of a pod: the next one has another.
	podAddress = regexp.MustCompile(`dial tcp [0-9a-f.:\[\]]+: `)
	// A certificate's error tells the time.
	currentTime = regexp.MustCompile(`: current time \S+ is (before|after) \S+`)
)

// asWebhookError gives err as a *WebhookError when the API server says that it could not call a webhook, which it does with an internal error and in words alone.
func asWebhookError(err error) (*WebhookError, bool) {
	if known, ok := errors.AsType[*WebhookError](err); ok {
		return known, true
	}
	if !apierrors.IsInternalError(err) {
		return nil, false
	}
	said := uncalledWebhook.FindStringSubmatch(err.Error())
	if said == nil {
		return nil, false
	}
	e := &WebhookError{Webhook: said[1], Cause: plainCause(said[2]), err: err}
	if service := webhookService.FindStringSubmatch(said[2]); service != nil {
		e.Service = types.NamespacedName{Name: service[1], Namespace: service[2]}
	}
	return e, true
}

// plainCause leaves of a transport's error what is the same at the next try.
func plainCause(said string) string {
	said = webhookRequest.ReplaceAllString(said, "")
	said = podAddress.ReplaceAllString(said, "")
	said = currentTime.ReplaceAllString(said, "")
	if strings.Contains(said, "deadline exceeded") || strings.Contains(said, "Timeout exceeded") || strings.Contains(said, "i/o timeout") {
		return "no answer in time"
	}
	return said
}

// unanswered decides about an object whose dry-run a webhook did not answer. It is tried when its turn comes, because the plan may bring the webhook's server back
// before. What is just as we applied it needs no write, and so no webhook: an agent that starts while istiod is away finds its objects as they should be. Of the
// others the order must know what they lose.
func (p *planner) unanswered(ctx context.Context, step Step, m liveObject, e *WebhookError) (Step, error) {
	step.Action, step.Reason = Create, "not tried: webhook "+e.Webhook+" did not answer"
	if m.Object == nil {
		return step, nil
	}
	full, err := p.get(ctx, step.resource, step.ID.Namespace, step.ID.Name)
	if err != nil {
		return step, err
	}
	ours := full.GetLabels()[PartOfLabel] == p.unit.ID
	if ours && asApplied(full, step.want.get()) && len(extras(full, full, nil, step.leave)) == 0 {
		step.Action, step.Reason = Unchanged, ""
		p.remember(&step, full, m.GetResourceVersion())
		return step, nil
	}
	step.Action, step.uid, step.counted = Update, full.GetUID(), step.counted && ours
	step.take = mayHaveExtras(full, step)
	if !ours {
		// As long as it is not ours, it may become somebody else's before the run.
		step.precondition = full.GetResourceVersion()
		step.Reason += "; " + cmp.Or(p.inherited(ctx, full), "adopts")
	}
	// Without the fields of others, which stay: what seems lost and is not is kept for a moment, and does no harm.
	step.live, step.applied = full, step.want.get()
	return step, nil
}

// asApplied is true for an object that has all of the form, and of which we own nothing else. It is more careful than an apply would be.
func asApplied(full, form *unstructured.Unstructured) bool {
	entry := appliedEntry(full)
	if entry == nil || !within(form.Object, full.Object) {
		return false
	}
	dropped := false
	fieldsOf(*entry).Leaves().Iterate(func(path fieldpath.Path) {
		_, _, there := pointerOf(form.Object, path)
		dropped = dropped || !there
	})
	return !dropped
}

// within is true when everything in part is in whole, and lists are equally long.
func within(part, whole any) bool {
	switch p := part.(type) {
	case map[string]any:
		w, ok := whole.(map[string]any)
		if !ok {
			return false
		}
		for name, mine := range p {
			other, there := w[name]
			if !there || !within(mine, other) {
				return false
			}
		}
		return true
	case []any:
		w, ok := whole.([]any)
		return ok && slices.EqualFunc(p, w, within)
	default:
		return value.Equals(value.NewValueInterface(part), value.NewValueInterface(whole))
	}
}

// awaitValidators waits until the webhooks answer about what is still to be written of Istio's kinds. Each revision has a webhook of its own, which judges the objects
// with its label, so one object of each is tried. What still gets no answer in time is told by the writes.
func (r *runner) awaitValidators(ctx context.Context, until time.Time) {
	tried := make(map[string]bool)
	for i := range r.result.Steps {
		s := &r.result.Steps[i]
		if s.State != NotReached || !needsIstiod(s.Step) || !isIstioKind(s.ID) {
			continue
		}
		revision := s.want.get().GetLabels()[revisionLabel]
		if tried[revision] {
			continue
		}
		tried[revision] = true
		_ = poll(ctx, until, func() (bool, error) {
			_, err := r.apply(ctx, s.resource, s.want.get(), true)
			_, unanswered := asWebhookError(err)
			return !unanswered, err
		})
	}
}
