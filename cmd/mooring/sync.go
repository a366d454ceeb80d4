package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// fieldManager is the name under which this command writes, so that managedFields tell a person's word from the agent's.
const fieldManager = client.FieldOwner("mooring-cli")

type syncOptions struct {
	cluster *clusterFlags
	confirm string
	// override is the reason for which a closed window is overridden.
	override string
	passFlags
}

func (c *cli) syncCommand() *cobra.Command {
	o := &syncOptions{}
	cmd := &cobra.Command{
		Use:     "sync NAME",
		GroupID: groupCluster,
		Short:   "Ask the agent for a pass now, and wait for what becomes of it",
		Long: `Ask the agent for a pass now: it looks for new commits, and looks over every object.
The command waits until the pass is over and prints how it ended.

With --confirm the agent may carry out the plan for that revision although it deletes
more than the guard allows. "mooring diff NAME" shows what that is. Only that revision is let
through: a newer commit has to be confirmed again.

With --override-window the newest commit is applied although spec.windows is closed. The reason is
told in status.history and in an Event. It counts for the commit that Git has at that moment,
and once; "mooring get windows" shows when the next window opens.

` + clusterHelp + `
Exit code: 0 Ready, 1 not Ready or an error, 2 wrong usage.`,
		Example: `  mooring sync prod -n mesh
  mooring sync prod -n mesh --override-window "incident 4711: retries off"
  mooring sync prod -n mesh --confirm env/prod@sha1:4f0c12ab34cd56ef78901234567890abcdef1234`,
		Args: args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("override-window") && strings.TrimSpace(o.override) == "" {
				return usageErrorf(cmd.CommandPath(), "--override-window needs a reason, which history will tell")
			}
			return c.sync(cmd.Context(), o, args[0])
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	cmd.Flags().StringVar(&o.confirm, "confirm", "", "let the guarded plan for this `revision` through (its commit's id, at least seven digits, is enough)")
	cmd.Flags().StringVar(&o.override, "override-window", "", "apply the newest commit although a window is closed, for this `reason`")
	addPassFlags(cmd, &o.passFlags)
	_ = cmd.RegisterFlagCompletionFunc("confirm", o.completeRevision)
	return cmd
}

func (c *cli) sync(ctx context.Context, o *syncOptions, name string) error {
	cluster, m, err := o.cluster.working(ctx, "sync", name)
	if err != nil {
		return err
	}
	full := m.Namespace + "/" + m.Name
	var confirmed string
	if o.confirm != "" {
		if confirmed, err = expandRevision(o.confirm, m); err != nil {
			return err
		}
	}
	if err := cluster.ask(ctx, m, confirmed, o.override); err != nil {
		return err
	}
	if o.override != "" {
		_, _ = fmt.Fprintf(c.errOut, "Mooring %s: a closed window is overridden: %s\n", full, o.override)
	}
	if confirmed != "" {
		_, _ = fmt.Fprintf(c.errOut, "Mooring %s: confirmed %s\n", full, confirmed)
	}
	done, err := c.awaitPass(ctx, cluster, m, o.passFlags)
	if done == nil || err != nil {
		return err
	}
	return c.reportPass(done)
}

// passFlags are those of commands that ask for a pass.
type passFlags struct {
	noWait  bool
	timeout time.Duration
}

func addPassFlags(cmd *cobra.Command, f *passFlags) {
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "do not wait for the pass")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait for the pass")
}

// awaitPass waits for the pass that m was annotated for; nil where nobody wants to wait.
func (c *cli) awaitPass(ctx context.Context, cluster *cluster, m *v1alpha1.Mooring, f passFlags) (*v1alpha1.Mooring, error) {
	if f.noWait {
		_, err := fmt.Fprintf(c.out, "Mooring %s/%s: asked for a pass\n", m.Namespace, m.Name)
		return nil, err
	}
	_, _ = fmt.Fprintf(c.errOut, "Mooring %s/%s: asked for a pass, waiting for it\n", m.Namespace, m.Name)
	return cluster.waitForPass(ctx, m, f.timeout)
}

// ask annotates a Mooring so that the agent makes a pass over it; an empty confirmed lets nothing through, nor does an empty reason to override a window.
func (c *cluster) ask(ctx context.Context, m *v1alpha1.Mooring, confirmed, override string) error {
	return c.askWith(ctx, m, func() {
		if confirmed != "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ConfirmAnnotation, confirmed)
		}
		if override != "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.OverrideWindowAnnotation, override)
		}
	})
}

// askWith changes a Mooring and asks for a pass in one write, so that no pass sees the one without the other.
func (c *cluster) askWith(ctx context.Context, m *v1alpha1.Mooring, change func()) error {
	return c.askBy(ctx, m, client.MergeFrom(m.DeepCopy()), change)
}

// askUnedited is askWith for what would overrule a person who has edited the Mooring since m was read: theirs stays, and it is an error. What the agent writes meanwhile
// is no edit.
func (c *cluster) askUnedited(ctx context.Context, m *v1alpha1.Mooring, change func()) error {
	seen := m.Generation
	for {
		err := c.askBy(ctx, m, client.MergeFromWithOptions(m.DeepCopy(), client.MergeFromWithOptimisticLock{}), change)
		if !apierrors.IsConflict(err) {
			return err
		}
		now := &v1alpha1.Mooring{} // into a new one, since what is gone would stay in m
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil {
			return fmt.Errorf("read Mooring %s/%s again: %w", m.Namespace, m.Name, err)
		}
		now.DeepCopyInto(m)
		if m.Generation != seen {
			return withHint(fmt.Errorf("write Mooring %s/%s: somebody has edited it at this very moment, and it stays as they want it", m.Namespace, m.Name),
				"mooring get %s -n %s shows it as it is now; where this is still wanted, say it again", m.Name, m.Namespace)
		}
	}
}

// askBy is askWith by a patch that was begun before the change.
func (c *cluster) askBy(ctx context.Context, m *v1alpha1.Mooring, patch client.Patch, change func()) error {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ReconcileAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	change()
	if err := c.Patch(ctx, m, patch, fieldManager); err != nil {
		return fmt.Errorf("write Mooring %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}

// working gives the Mooring that a command wants a pass of. It refuses one of which no agent makes any.
func (f *clusterFlags) working(ctx context.Context, verb, name string) (*cluster, *v1alpha1.Mooring, error) {
	c, err := f.connect()
	if err != nil {
		return nil, nil, err
	}
	m, err := c.mooring(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if m.Spec.Suspend {
		return nil, nil, withHint(fmt.Errorf("%s Mooring %s/%s: it is suspended, so the agent does nothing with it", verb, m.Namespace, m.Name),
			"mooring resume %s -n %s", m.Name, m.Namespace)
	}
	return c, m, nil
}

// reportPass prints how the pass ended and answers with the exit code for it.
func (c *cli) reportPass(m *v1alpha1.Mooring) error {
	ready := readyOf(m)
	paint := paletteFor(c.color, c.out, c.getenv).ofStatus(ready.Status)
	if _, err := fmt.Fprintf(c.out, "Mooring %s/%s: %s\n  %s\n", m.Namespace, m.Name,
		paint(fmt.Sprintf("Ready=%s %s", ready.Status, ready.Reason)), indent(ready.Message)); err != nil {
		return err
	}
	if ready.Status != metav1.ConditionTrue {
		return &exitError{code: exitFound}
	}
	return nil
}

// waitForPass watches a Mooring until the agent answered the annotation that m carries.
func (c *cluster) waitForPass(ctx context.Context, m *v1alpha1.Mooring, patience time.Duration) (*v1alpha1.Mooring, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := m.Annotations[v1alpha1.ReconcileAnnotation]
	for {
		done, err := c.watchForPass(limited, m, asked)
		if done != nil || err != nil && hopeless(err) {
			return done, err
		}
		// The API server ends every watch after some minutes, and may itself be restarted: the next watch starts at the
		// state that there is then.
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			why := ""
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				why = fmt.Sprintf(" (%v)", err)
			}
			return nil, withHint(fmt.Errorf("wait for Mooring %s/%s: no answer from the agent within %s%s", m.Namespace, m.Name, patience, why),
				"is the agent running? kubectl get deployments -A | grep mooring; a long pass may need a longer --timeout")
		case <-time.After(rewatch):
		}
	}
}

// rewatch is the pause between two watches, so that one that ends at once does not make a storm.
const rewatch = 500 * time.Millisecond

var errDeleted = errors.New("it was deleted meanwhile")

// hopeless is an error that another watch cannot mend.
func hopeless(err error) bool {
	return errors.Is(err, errDeleted) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// watchForPass is one watch. It gives nil when the watch ended before the pass did.
func (c *cluster) watchForPass(ctx context.Context, m *v1alpha1.Mooring, asked string) (*v1alpha1.Mooring, error) {
	watcher, err := c.Watch(ctx, &v1alpha1.MooringList{}, client.InNamespace(m.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", m.Name)})
	if err != nil {
		return nil, fmt.Errorf("watch Mooring %s/%s: %w", m.Namespace, m.Name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		got, ok := event.Object.(*v1alpha1.Mooring)
		switch {
		case !ok: // an error of the watch itself, such as "too old"
			return nil, nil
		case event.Type == watch.Deleted || got.UID != m.UID:
			return nil, fmt.Errorf("wait for Mooring %s/%s: %w", m.Namespace, m.Name, errDeleted)
		}
		// Somebody else may have asked after us. A pass that answers them answers us as well.
		asked = cmp.Or(got.Annotations[v1alpha1.ReconcileAnnotation], asked)
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		if got.Status.LastHandledReconcileAt == asked && ready != nil && ready.Status != metav1.ConditionUnknown {
			return got, nil
		}
	}
	return nil, nil
}

// expandRevision makes a full revision of what a person typed: the revision itself, or the beginning of the id of the
// newest commit, perhaps with ",deletes=N" behind it. Another commit cannot be confirmed, because no plan for it waits.
func expandRevision(word string, m *v1alpha1.Mooring) (string, error) {
	typed, number, bounded := strings.Cut(word, ",")
	if bounded {
		number = "," + number
	}
	newest := m.Status.LastAttemptedRevision
	if newest == "" {
		return "", withHint(fmt.Errorf("confirm %s: Mooring %s/%s has not tried any revision yet", typed, m.Namespace, m.Name),
			"run it without --confirm first")
	}
	_, id, _ := strings.Cut(newest, "@")
	_, hash, _ := strings.Cut(id, ":")
	if typed == newest || len(typed) >= 7 && strings.HasPrefix(hash, typed) {
		return newest + number, nil
	}
	return "", withHint(fmt.Errorf("confirm %s: the newest revision that Mooring %s/%s tried is %s", typed, m.Namespace, m.Name, newest),
		"look at the plan for it with mooring diff %s -n %s, then confirm that revision", m.Name, m.Namespace)
}

// completeRevision offers the revision that could be confirmed.
func (o *syncOptions) completeRevision(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	m, err := cluster.mooring(ctx, args[0])
	if err != nil || m.Status.LastAttemptedRevision == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{m.Status.LastAttemptedRevision}, cobra.ShellCompDirectiveNoFileComp
}
