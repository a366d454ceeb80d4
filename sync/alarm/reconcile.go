package alarm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// AddTo makes a manager keep the Alarms of its cluster. A cluster that has no kind Alarm is kept without.
func (d *Dispatcher) AddTo(mgr ctrl.Manager) error {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.AlarmKind)
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
		d.Log.Info("no alarms are sent: the cluster has no kind Alarm. Apply deploy/crds, then start the agent again")
		d.idle = true // nothing runs yet that would look at it
		return nil
	}
	if err := mgr.Add(d); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(d.rest)); err != nil {
		return err
	}
	err := builder.ControllerManagedBy(mgr).
		For(&v1alpha1.Alarm{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(d)
	if err != nil {
		return fmt.Errorf("make controller of Alarms: %w", err)
	}
	return nil
}

// Reconcile takes up an Alarm that is new, changed or gone.
func (d *Dispatcher) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := d.seed(ctx); err != nil {
		return ctrl.Result{}, err
	}
	a := &v1alpha1.Alarm{}
	err := d.Client.Get(ctx, req.NamespacedName, a)
	if err == nil && !d.knows(req.NamespacedName, a.UID) {
		// What it told before stands in its status: the cache may hold that from before the last message of another agent.
		err = d.Live.Get(ctx, req.NamespacedName, a)
	}
	if apierrors.IsNotFound(err) || err == nil && !a.DeletionTimestamp.IsZero() {
		d.remove(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read Alarm %s: %w", req, err)
	}
	d.set(ctx, a)
	return ctrl.Result{}, nil
}

func (d *Dispatcher) knows(key types.NamespacedName, uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.workers[key]
	return w != nil && w.alarm.UID == uid
}
