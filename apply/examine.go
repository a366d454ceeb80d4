package apply

import (
	"cmp"
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// examine decides what to do with one wanted object. It asks the server as little as it can: nothing when the object has the
// resourceVersion in which it was right, one dry-run when it moved, and the object itself only when that says that something differs.
func (p *planner) examine(ctx context.Context, w wanted) (Step, error) {
	step := stepOf(w)
	if w.form.gist.disabled {
		return step.skip(ReconcileAnnotation + ": disabled in Git"), nil
	}
	if isRootCertificate(w.id) {
		return step.skip(rootCertificate + "; take it out of Git"), nil
	}
	m, ours := p.live.objects[w.id]
	if !ours {
		return p.seek(ctx, w, step)
	}
	step = step.over(m)
	if done, ok := p.settled(step, m); ok {
		return done, nil
	}
	if m.sketch {
		done, full, err := p.judgeAgain(ctx, step)
		switch {
		case apierrors.IsNotFound(err): // it went a moment ago
			return p.seek(ctx, w, stepOf(w))
		case err != nil || full == nil:
			return done, err
		}
		m.Object, m.sketch = full, false
		step = step.over(m)
	}
	if ignoresDrift(w.form.get(), m) {
		if done, ok, err := p.ignore(ctx, w, step, m); err != nil || ok {
			return done, err
		}
	}
	if err := p.leave(ctx, &w, &step, m); err != nil {
		return step, err
	}
	if p.untried(w) {
		step.want = formed(adjust(w, m, nil))
		step.Action, step.Reason = Update, "not tried: "+w.definition.String()+" changes first"
		step.take = mayHaveExtras(m, step)
		return step, nil
	}
	return p.compare(ctx, w, step, m)
}

// seek decides about a wanted object that does not carry the unit's label, or is not there at all.
func (p *planner) seek(ctx context.Context, w wanted, step Step) (Step, error) {
	if reason := p.waitsFor(w); reason != "" {
		step.Action, step.Reason = Create, reason
		step.want = formed(adjust(w, nil, nil))
		return step, nil
	}
	if p.untried(w) {
		return p.findUnserved(ctx, w, step)
	}
	if err := p.leave(ctx, &w, &step, nil); err != nil {
		return step, err
	}
	return p.find(ctx, w, step)
}

// leave finds what of the object is left to controllers that live.
func (p *planner) leave(ctx context.Context, w *wanted, step *Step, m metav1.Object) error {
	found, err := p.shared(ctx, *w, m)
	w.leave = append(w.leave[:len(w.leave):len(w.leave)], found...)
	step.leave = w.leave
	return err
}

func stepOf(w wanted) Step {
	return Step{
		ID: w.id, APIVersion: w.form.of.GetAPIVersion(), Origin: w.origin,
		want: w.form, resource: w.resource, hash: w.hash, definition: w.definition, leave: w.leave,
	}
}

// settled is what can be said from the listed metadata alone.
func (p *planner) settled(step Step, m metav1.Object) (Step, bool) {
	switch {
	case m.GetDeletionTimestamp() != nil:
		step.Action, step.Reason = Create, "is being deleted; it is created again once it is gone"
		step.health = terminating(step.ID)
		return step, true
	case m.GetAnnotations()[ReconcileAnnotation] == "disabled":
		return step.skip(ReconcileAnnotation + ": disabled on the live object"), true
	}
	known, ok := p.memory.recall(p.unit.ID, step.ID)
	if ok && known.uid == m.GetUID() && known.resourceVersion == m.GetResourceVersion() && known.hash == step.hash && known.checks == p.unit.Health.Key() && !known.stale {
		step.Action = Unchanged
		step.health = &Health{ID: step.ID, Status: known.status, Message: known.message}
		return step, true
	}
	return step, false
}

// judgeAgain reads an object of which only the status has changed, for its health. It gives the object when more has changed by now.
func (p *planner) judgeAgain(ctx context.Context, step Step) (Step, *unstructured.Unstructured, error) {
	full, err := p.get(ctx, step.resource, step.ID.Namespace, step.ID.Name)
	if err != nil {
		return step, nil, err
	}
	if full.GetUID() != step.uid || full.GetResourceVersion() != step.version {
		return step, full, nil
	}
	step.Action = Unchanged
	p.remember(&step, full, step.version)
	return step, nil, nil
}

// waitsFor says what has to be there before the object can even be tried; empty when it can be now.
func (p *planner) waitsFor(w wanted) string {
	namespace := namespaceID(w.id.Namespace)
	if w.id.Namespace != "" && p.pending[namespace] == Create {
		return "not tried: " + namespace.String() + " is created first"
	}
	switch pending := p.pending[w.definition]; {
	case pending == Create:
		return "not tried: " + w.definition.String() + " is created first"
	case pending == Unchanged && w.unserved:
		return "not tried: " + w.definition.String() + " is not established yet"
	default:
		return ""
	}
}

// untried is true when the version is served only once its definition, which is there, is changed. A version that is not in the
// catalog although its definition is as it should be is tried: discovery lags a little.
func (p *planner) untried(w wanted) bool {
	return w.unserved && p.pending[w.definition] == Update
}

func namespaceID(name string) render.ID {
	return render.ID{Kind: kindNamespace.Kind, Name: name}
}

// ignore leaves what others changed of an object whose drift is ignored: as long as Git says what was applied last. Without a memory
// and without our annotation on the object (it was only the live object that was annotated) what lives is believed.
func (p *planner) ignore(ctx context.Context, w wanted, step Step, m liveObject) (Step, bool, error) {
	last := m.GetAnnotations()[AppliedAnnotation]
	if known, ok := p.memory.recall(p.unit.ID, w.id); ok && last == "" && known.uid == m.GetUID() {
		last = known.hash
	}
	inGit := w.form.get().GetAnnotations()[DriftAnnotation] == "ignore" && w.id.GroupKind() != kindSecret
	_, offered := m.GetAnnotations()[HandoverAnnotation] // which is to be taken back
	if last != w.hash && (last != "" || inGit) || !isOurs(m) || offered {
		return step, false, nil
	}
	full, err := p.get(ctx, m.resource, w.id.Namespace, w.id.Name)
	if err != nil {
		return step, false, err
	}
	step.Action, step.Reason = Unchanged, DriftAnnotation+": ignore"
	p.remember(&step, full, full.GetResourceVersion())
	return step, true, nil
}

// compare tries the apply on an object that is ours, and looks at what it would change.
func (p *planner) compare(ctx context.Context, w wanted, step Step, m liveObject) (Step, error) {
	var full *unstructured.Unstructured
	if isWebhook(w.id) || len(w.leave) > 0 {
		var err error
		if full, err = p.get(ctx, w.resource, w.id.Namespace, w.id.Name); err != nil {
			return step, err
		}
	}
	step.want = formed(adjust(w, m, full))
	dry, err := p.apply(ctx, w.resource, step.want.get(), true)
	if err != nil {
		return p.refused(ctx, w, step, m, err)
	}
	found := extras(m, dry, nil, w.leave)
	if len(found) == 0 && isOurs(m) && unmoved(m, dry) {
		step.Action = Unchanged
		p.remember(&step, dry, m.GetResourceVersion())
		return step, nil
	}
	full, err = p.get(ctx, w.resource, w.id.Namespace, w.id.Name)
	if err != nil {
		return step, err
	}
	holders, err := p.held(ctx, w.id, full)
	if err != nil {
		return step, err
	}
	if err := keepsVersions(full, step.want.get()); err != nil {
		return step, err
	}
	return p.differ(ctx, step, full, dry, holders), nil
}

// unmoved is true when the dry-run changed nothing of the object, seen from its metadata alone. That is enough only for kinds that have a
// generation: of the others (ConfigMap, Secret, Service…) the content may differ while all metadata is equal, because the times in
// managedFields are whole seconds.
func unmoved(m liveObject, dry *unstructured.Unstructured) bool {
	return m.GetGeneration() > 0 && m.GetGeneration() == dry.GetGeneration() && m.GetResourceVersion() == dry.GetResourceVersion() &&
		sameMetadata(m, dry)
}

// differ makes an update or unchanged out of the live object and the dry-run's answer.
func (p *planner) differ(ctx context.Context, step Step, full, dry *unstructured.Unstructured, holders []Holder) Step {
	found := extras(full, dry, holders, step.leave)
	step.taken = extraDiffs(step.ID, full, p.probe(ctx, step, found), found)
	step.Diff = append(diffObjects(step.ID, full, dry), step.taken...)
	step.uid, step.live, step.applied = full.GetUID(), full, dry
	step.counted = step.counted && full.GetLabels()[PartOfLabel] == p.unit.ID
	step.Diff = append(step.Diff, strippedDiffs(full, step.want.get(), holders, step.Diff)...)
	var reasons []string
	step, reason := p.adopt(ctx, step, full, holders)
	if reason != "" {
		reasons = append(reasons, reason)
	} else if reason := p.inherited(ctx, full); reason != "" {
		reasons = append(reasons, reason)
		step.precondition = full.GetResourceVersion()
	} else if full.GetLabels()[PartOfLabel] == "" {
		reasons = append(reasons, "adopts")
		step.precondition = full.GetResourceVersion()
	}
	if len(found) > 0 {
		step.take = true
		if theirs := managersOf(found); len(theirs) > 0 {
			reasons = append(reasons, "takes over fields of "+strings.Join(theirs, ", "))
		}
	}
	if len(step.Diff) == 0 && len(reasons) == 0 && isOurs(full) {
		step.Action = Unchanged
		p.remember(&step, dry, full.GetResourceVersion())
		return step
	}
	if len(step.Diff) == 0 && len(reasons) == 0 {
		reasons = append(reasons, "owns its fields again")
	}
	step.Action, step.Reason = Update, strings.Join(reasons, "; ")
	step.health = p.unit.healthOf(dry)
	return step
}

// probe gives the object as it would be if nobody had ever written to it but us: the dry-run of its creation under another name. It tells which
// fields that somebody owns are only the server's defaults, so that a plan does not claim to remove what comes back. Nil when the server would
// not create it so: then the plan claims too much rather than too little.
func (p *planner) probe(ctx context.Context, step Step, found []extra) *unstructured.Unstructured {
	if len(found) == 0 {
		return nil
	}
	form := step.want.get().DeepCopy()
	form.SetName("mooring-probe")
	bare, err := p.apply(ctx, step.resource, form, true)
	if err != nil || bare.GetResourceVersion() != "" {
		return nil
	}
	return bare
}

// find looks for a wanted object that does not carry our label: with the dry-run of its creation, which tells at once
// whether it is right and whether it is there.
func (p *planner) find(ctx context.Context, w wanted, step Step) (Step, error) {
	if isWebhook(w.id) || len(w.leave) > 0 {
		full, err := p.get(ctx, w.resource, w.id.Namespace, w.id.Name)
		if err == nil {
			return p.meet(ctx, w, step, full)
		}
		if !apierrors.IsNotFound(err) {
			return step, err
		}
	}
	step.want = formed(adjust(w, nil, nil))
	dry, failed := p.apply(ctx, w.resource, step.want.get(), true)
	if failed == nil && dry.GetResourceVersion() == "" {
		step.Action = Create
		return step, nil
	}
	full, err := p.get(ctx, w.resource, w.id.Namespace, w.id.Name)
	switch {
	case err == nil:
		return p.meet(ctx, w, step, full)
	case !apierrors.IsNotFound(err):
		return step, err
	case failed != nil:
		return p.refused(ctx, w, step, liveObject{}, failed)
	default: // it went between the two requests
		step.Action = Create
		return step, nil
	}
}

// findUnserved looks for an object in whichever version of its kind is served today.
func (p *planner) findUnserved(ctx context.Context, w wanted, step Step) (Step, error) {
	step.want = formed(adjust(w, nil, nil))
	step.Action, step.Reason = Create, "not tried: "+w.definition.String()+" changes first"
	r, served, err := p.catalog.kind(w.id.GroupKind())
	if err != nil || !served {
		return step, err
	}
	m, err := p.getMeta(ctx, r, w.id.Namespace, w.id.Name)
	if apierrors.IsNotFound(err) {
		return step, nil
	}
	if err != nil {
		return step, err
	}
	holders, err := p.held(ctx, w.id, m)
	if err != nil {
		return step, err
	}
	step = step.over(liveObject{Object: m, resource: r})
	step, reason := p.adopt(ctx, step, m, holders)
	step.counted = false
	step.Action, step.precondition = Update, m.ResourceVersion
	step.take = step.take || mayHaveExtras(m, step)
	step.Reason += "; " + cmp.Or(reason, p.inherited(ctx, m), "adopts")
	return step, nil
}

// meet decides about a wanted object that is there and was not in our list: somebody else's, nobody's, or ours
// when its kind could not be listed.
func (p *planner) meet(ctx context.Context, w wanted, step Step, full *unstructured.Unstructured) (Step, error) {
	holders, err := p.held(ctx, w.id, full)
	if err != nil {
		return step, err
	}
	m := liveObject{Object: full, resource: w.resource}
	step = step.over(m)
	if done, ok := p.settled(step, m); ok {
		return done, nil
	}
	step.want = formed(adjust(w, m, full))
	dry, err := p.apply(ctx, w.resource, step.want.get(), true)
	if hook, ok := asWebhookError(err); ok && len(holders) > 0 {
		return step, hook // what the other tool has of it is taken over only when the outcome is seen
	}
	if err != nil {
		return p.refused(ctx, w, step, m, err)
	}
	if err := keepsVersions(full, step.want.get()); err != nil {
		return step, err
	}
	return p.differ(ctx, step, full, dry, holders), nil
}

// refused decides about an object whose dry-run failed. m has no metadata when the object is not there.
func (p *planner) refused(ctx context.Context, w wanted, step Step, m liveObject, err error) (Step, error) {
	there := m.Object != nil
	if hook, ok := asWebhookError(err); ok {
		return p.unanswered(ctx, step, m, hook)
	}
	if there && w.id.GroupKind() == kindDefinition {
		if full, unread := p.get(ctx, w.resource, "", w.id.Name); unread == nil {
			if fault := keepsVersions(full, step.want.get()); fault != nil {
				return step, fault
			}
		}
	}
	if changes := p.pending[w.definition]; changes == Update && isSchemaError(err) {
		// The old schema refuses what the new one may allow.
		step.Action, step.Reason = Create, "not tried: "+w.definition.String()+" changes first"
		if there {
			step.Action, step.take = Update, mayHaveExtras(m, step)
		}
		return step, nil
	}
	fields, immutable := immutableFields(err)
	if !immutable || !there {
		return step, err
	}
	if neverReplaced(w.id.GroupKind()) || !annotated(w.form.get(), m, ForceAnnotation, "enabled") {
		return step, immutableError(w.id, fields, err)
	}
	full, err := p.get(ctx, w.resource, w.id.Namespace, w.id.Name)
	if err != nil {
		return step, err
	}
	step.Action, step.Reason = Replace, strings.Join(fields, ", ")+" cannot change, and "+ForceAnnotation+" is enabled"
	step.Diff = immutableDiffs(w.id, fields, full, step.want.get())
	step.uid = full.GetUID()
	return step, nil
}
