package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// reporter tells the world what became of a pass.
type reporter interface {
	Report(ctx context.Context, m *v1alpha1.Mooring, out Outcome) error
	Forget(namespace, name string)
}

// remover takes the objects of a deleted Mooring away, or lets go of them.
type remover interface {
	PlanDelete(ctx context.Context, unit apply.Unit) (*apply.Plan, error)
	Orphan(ctx context.Context, unit apply.Unit) (*apply.Result, error)
	Forget(id string)
}

// Reconciler answers to Kubernetes for every Mooring: one request pending per Mooring is enough, since the next pass
// sees the newest commit anyway.
type Reconciler struct {
	client   client.Client
	syncer   *Syncer
	remover  remover
	reporter reporter
	waker    *waker
}

// Reconcile makes a pass, or carries out the deletion policy.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	m := &v1alpha1.Mooring{}
	if err := r.client.Get(ctx, req.NamespacedName, m); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read Mooring %s: %w", req, err)
	}
	m = r.syncer.asEdited(ctx, m)
	if !m.DeletionTimestamp.IsZero() {
		return r.remove(ctx, m)
	}
	if err := r.adopt(ctx, m); err != nil {
		return ctrl.Result{}, err
	}
	if m.Spec.Suspend {
		return ctrl.Result{}, r.reporter.Report(ctx, m, suspended(m))
	}
	out := r.syncer.Once(ctx, m)
	if ctx.Err() != nil { // the agent is stopping: what was done is in the cluster, and the next one goes on from there
		return ctrl.Result{}, ctx.Err()
	}
	logOutcome(ctx, out)
	was, fared := m.Status.LastAppliedRevision, fares(m, out)
	if err := r.reporter.Report(ctx, m, out); err != nil {
		return ctrl.Result{}, err
	}
	r.syncer.units.of(m).note(out)
	r.waker.offered(out.Plan, out.Result)
	if out.Err == nil && out.Reason == v1alpha1.ReasonApplied {
		r.waker.ready(req.NamespacedName)
	}
	if fared {
		r.waker.fared(req.NamespacedName)
	}
	if out.Applied.String() != was {
		r.waker.decided(req.NamespacedName)
	}
	for _, name := range used(m, out) {
		if err := r.client.Patch(ctx, m, withoutWord(m, name)); client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) { // Invalid: it is another word by now
			return ctrl.Result{}, fmt.Errorf("take the used annotation %s away: %w", name, err)
		}
	}
	return ctrl.Result{RequeueAfter: r.syncer.units.of(m).next(m, out)}, nil
}

// fares says whether a pass changed what those that follow the Mooring look at.
func fares(m *v1alpha1.Mooring, out Outcome) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	return out.Applied.String() != m.Status.LastAppliedRevision || ready == nil || ready.Reason != out.Reason ||
		out.Result != nil && meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionHealthy) != (len(out.Result.Unhealthy()) == 0) ||
		out.Result != nil && (m.Status.DriftCount == 0) != (len(out.Drifting()) == 0)
}

// used are the annotations with a human's word that has done its work.
func used(m *v1alpha1.Mooring, out Outcome) []string {
	var names []string
	if out.WordUsed && m.Annotations[v1alpha1.ConfirmAnnotation] != "" {
		names = append(names, v1alpha1.ConfirmAnnotation)
	}
	if out.AdoptionUsed {
		names = append(names, v1alpha1.AdoptAnnotation)
	}
	if out.Promotion != nil && out.Promotion.WordUsed {
		names = append(names, v1alpha1.PromoteAnnotation)
	}
	if out.OverrideUsed {
		names = append(names, v1alpha1.OverrideWindowAnnotation)
	}
	return names
}

// adopt sees to it that a Mooring is not gone before its deletion policy was carried out.
func (r *Reconciler) adopt(ctx context.Context, m *v1alpha1.Mooring) error {
	if controllerutil.ContainsFinalizer(m, v1alpha1.Finalizer) {
		return nil
	}
	before := m.DeepCopy()
	controllerutil.AddFinalizer(m, v1alpha1.Finalizer)
	// Finalizers are one list to a merge patch: the lock keeps those that somebody else adds meanwhile.
	if err := r.client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

// remove carries out the deletion policy of a Mooring that is being deleted, then lets it go.
func (r *Reconciler) remove(ctx context.Context, m *v1alpha1.Mooring) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(m, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	out := r.syncer.remove(ctx, r.remover, m)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	logOutcome(ctx, out)
	if out.Err != nil {
		if err := r.reporter.Report(ctx, m, out); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: r.syncer.units.of(m).next(m, out)}, nil
	}
	if err := r.client.Patch(ctx, m, withoutFinalizer(m)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("remove finalizer: %w", err)
	}
	r.forget(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	r.waker.decided(client.ObjectKeyFromObject(m))
	return ctrl.Result{}, nil
}

// withoutFinalizer takes our finalizer off and no other. It asks for that entry alone to be as it was: the object as a whole has
// changed meanwhile, because the ApplySet's book was closed.
func withoutFinalizer(m *v1alpha1.Mooring) client.Patch {
	path := fmt.Sprintf("/metadata/finalizers/%d", slices.Index(m.Finalizers, v1alpha1.Finalizer))
	return client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"test","path":%[1]q,"value":%[2]q},{"op":"remove","path":%[1]q}]`, path, v1alpha1.Finalizer))
}

// remove takes the objects of a deleted Mooring away, or lets go of them, as its deletion policy says. Suspend does
// not matter: a person who deletes a Mooring has said what is to become of its objects.
func (s *Syncer) remove(ctx context.Context, r remover, m *v1alpha1.Mooring) (out Outcome) {
	p := s.begin(m)
	p.removing = true
	p.slots.take()
	defer p.slots.give()
	ctx, cancel := context.WithTimeout(ctx, p.mooring.Spec.Timeout.Duration)
	defer cancel()
	defer func() { out = p.end(recover()) }()
	p.stage = report.StageApply

	var err error
	owner := p.owner(p.out.Applied)
	if p.mooring.Spec.DeletionPolicy == v1alpha1.DeletionOrphan {
		p.out.Result, err = r.Orphan(ctx, owner)
		p.out.Plan = &apply.Plan{Unit: owner}
	} else if p.out.Plan, err = r.PlanDelete(ctx, owner); err == nil {
		p.out.Result, err = s.applier.Run(ctx, p.out.Plan)
	}
	if err != nil {
		p.fail(&StageError{Stage: report.StageApply, Err: fmt.Errorf("carry out deletionPolicy %s: %w", p.mooring.Spec.DeletionPolicy, err)})
	}
	return p.out
}

// forget a Mooring that is gone, or belongs to another shard by now.
func (r *Reconciler) forget(req ctrl.Request) {
	r.remover.Forget(apply.ApplySetID(req.Name, req.Namespace, v1alpha1.Kind, v1alpha1.GroupVersion.Group))
	r.syncer.units.forget(req.NamespacedName)
	r.syncer.wishes.forget(req.NamespacedName)
	r.reporter.Forget(req.Namespace, req.Name)
}

func suspended(m *v1alpha1.Mooring) Outcome {
	return Outcome{Generation: m.Generation, Reason: v1alpha1.ReasonSuspended, Finished: time.Now()}
}

// logOutcome is the one place where a pass is logged: failures as errors, changes as information, rest not at all.
func logOutcome(ctx context.Context, out Outcome) {
	l := log.FromContext(ctx).WithValues("revision", out.Newest.String(), "reason", out.Reason)
	if stack := stackOf(out.Err); stack != "" {
		l.Error(out.Err, "a panic below the pass", "stack", stack)
	}
	switch {
	case out.GaveWay() != nil:
		l.Info("the wait at a gate was ended", "why", out.GaveWay().Error())
	case out.Err != nil && out.Stage != report.StageWindow && out.Stage != report.StageDependency && out.Stage != report.StagePromotion: // what these hold is as somebody wants it
		l.Error(out.Err, "newest commit is not in force", "stage", out.Stage, "findings", len(out.Findings), "applied", out.Applied.String())
	case out.Result != nil && out.Result.Counts().Changes() > 0:
		c := out.Result.Counts()
		l.Info("applied", "cause", out.Cause, "created", c.Create, "configured", c.Update+c.Replace, "deleted", c.Delete)
	}
	if out.Unasked != "" {
		l.Info("the proxies were not asked, a pause had to do", "why", out.Unasked)
	}
	if out.KeepErr != nil && out.GaveWay() == nil {
		l.Error(out.KeepErr, "drift could not be corrected", "applied", out.Applied.String())
	}
}

// stackOf a panic that was made an error, by a pass or by one of its steps; empty for every other error.
func stackOf(err error) string {
	if e, ok := errors.AsType[*PanicError](err); ok {
		return string(e.Stack)
	}
	if e, ok := errors.AsType[*render.Panic](err); ok {
		return string(e.Stack)
	}
	if e, ok := errors.AsType[*apply.Panic](err); ok {
		return string(e.Stack)
	}
	return ""
}

// asking lets those changes of a Mooring through that ask for a pass: its spec, its deletion, and the annotations by which
// a person asks. Our own writes (status, finalizer, ApplySet annotations) ask for none.
func asking() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return asks(e.ObjectOld, e.ObjectNew)
	}}
}

// asks is true when a Mooring's change asks for a pass.
func asks(before, now client.Object) bool {
	if before.GetGeneration() != now.GetGeneration() { // a deletion makes a new generation, too
		return true
	}
	was, is := before.GetAnnotations(), now.GetAnnotations()
	return was[v1alpha1.ReconcileAnnotation] != is[v1alpha1.ReconcileAnnotation] ||
		slices.ContainsFunc([]string{v1alpha1.ConfirmAnnotation, v1alpha1.AdoptAnnotation, v1alpha1.OverrideWindowAnnotation, v1alpha1.PromoteAnnotation}, func(word string) bool {
			return was[word] != is[word] && is[word] != ""
		})
}
