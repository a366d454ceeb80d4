package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type rollbackOptions struct {
	cluster *clusterFlags
	to      string
	reason  string
	passFlags
}

func (c *cli) rollbackCommand() *cobra.Command {
	o := &rollbackOptions{}
	cmd := &cobra.Command{
		Use:     "rollback NAME",
		GroupID: groupCluster,
		Short:   "Go back to a revision that was applied before, and stay there until unpin",
		Long: `Go back to a revision that "mooring history NAME" tells of: the one that was in force before, or
the one of --to. It is pinned: drift is put right to it, and new commits wait until "mooring unpin
NAME". Windows and dependencies do not hold it; the check and the guard do, since the mesh may
have changed meanwhile. "mooring diff NAME --from REV --to REV" shows what differs between two.

The field spec.pin is set in the cluster. When the Mooring itself is kept in Git, set it there
too, or what keeps it may take it away. Git is not changed: revert the commit there before you
unpin, or it comes again.

` + clusterHelp + `
Exit code: 0 Ready, 1 not Ready or an error, 2 wrong usage.`,
		Example: `  mooring rollback prod -n mesh --reason "incident 4711"
  mooring rollback prod -n mesh --to 4f0c12a`,
		Args: args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.rollback(cmd.Context(), o, args[0]) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	cmd.Flags().StringVar(&o.to, "to", "", "the `revision` to go back to (its commit's id, at least seven digits, is enough)")
	cmd.Flags().StringVar(&o.reason, "reason", "", "`why`; it is told in status, history and an Event")
	addPassFlags(cmd, &o.passFlags)
	_ = cmd.RegisterFlagCompletionFunc("to", o.cluster.completeRevisionOf(inHistory))
	return cmd
}

func (c *cli) rollback(ctx context.Context, o *rollbackOptions, name string) error {
	cluster, m, err := o.cluster.working(ctx, "roll back", name)
	if err != nil {
		return err
	}
	target, err := rollbackTarget(m, o.to)
	if err != nil {
		return err
	}
	if target.Failed != "" {
		c.note("%s was not healthy when it was in force: %s", shortRevision(target.Revision), oneLine(target.Failed))
	}
	from := m.Status.LastAppliedRevision
	pin := &v1alpha1.Pin{Revision: target.Revision, Reason: oneLine(o.reason)}
	if err := cluster.askUnedited(ctx, m, func() { m.Spec.Pin = pin }); err != nil {
		return err
	}
	said := fmt.Sprintf("goes back from %s to %s", shortRevision(from), shortRevision(target.Revision))
	if sameCommit(from, target.Revision) {
		said = "stays at " + shortRevision(target.Revision)
	}
	_, _ = fmt.Fprintf(c.errOut, "Mooring %s/%s: %s\n  %s\n  new commits wait; the way on: mooring unpin %s -n %s\n",
		m.Namespace, m.Name, said, aboutEntry(target, time.Now()), m.Name, m.Namespace)
	done, err := c.awaitPass(ctx, cluster, m, o.passFlags)
	if done == nil || err != nil {
		return err
	}
	return c.reportPass(done)
}

// rollbackTarget is the entry of history that is named, or the one that was in force before.
func rollbackTarget(m *v1alpha1.Mooring, to string) (*v1alpha1.HistoryEntry, error) {
	fail := func(err error, hint string) error {
		return withHint(fmt.Errorf("roll back Mooring %s/%s: %w", m.Namespace, m.Name, err), "%s", hint)
	}
	look := fmt.Sprintf("mooring history %s -n %s lists what was applied; another commit comes by way of Git", m.Name, m.Namespace)
	if to == "" {
		if e := before(m); e != nil {
			return e, nil
		}
		return nil, fail(fmt.Errorf("history has no other commit that was healthy in time before the one in force"), look)
	}
	revision, err := pickRevision(to, revisionsOf(m))
	if err != nil {
		if hint := hintOf(err); hint != "" {
			look = hint
		}
		return nil, fail(fmt.Errorf("history of what was applied: %w", err), look)
	}
	return entryOf(m, revision), nil
}

// before is the newest entry that was in force before the one that is, of another commit, and that did not fail. What was gone back to once has its place where it was
// first: who goes back twice does not come out where they were.
func before(m *v1alpha1.Mooring) *v1alpha1.HistoryEntry {
	all := m.Status.History
	at := slices.IndexFunc(all, func(e v1alpha1.HistoryEntry) bool { return sameCommit(e.Revision, m.Status.LastAppliedRevision) })
	if at < 0 {
		return nil
	}
	for all[at].By == byRollback {
		first := slices.IndexFunc(all[at+1:], func(e v1alpha1.HistoryEntry) bool { return sameCommit(e.Revision, all[at].Revision) })
		if first < 0 {
			break
		}
		at += 1 + first
	}
	for i := at + 1; i < len(all); i++ {
		if e := entryOf(m, all[i].Revision); !sameCommit(e.Revision, all[at].Revision) && e.Failed == "" && all[i].Failed == "" {
			return &all[i]
		}
	}
	return nil
}

// byRollback is what history writes where a revision came back.
const byRollback = "rollback"

// aboutEntry says in one line what somebody goes back to.
func aboutEntry(e *v1alpha1.HistoryEntry, now time.Time) string {
	var parts []string
	if e.Subject != "" {
		parts = append(parts, fmt.Sprintf("%q", oneLine(e.Subject)))
	}
	if e.Author != "" {
		parts = append(parts, "by "+oneLine(e.Author))
	}
	when := fmt.Sprintf("applied %s (%s ago)", e.AppliedAt.UTC().Format(time.RFC3339), duration.HumanDuration(now.Sub(e.AppliedAt.Time)))
	return strings.Join(append(parts, when), ", ")
}

func (c *cli) unpinCommand() *cobra.Command {
	o := &rollbackOptions{}
	cmd := &cobra.Command{
		Use:     "unpin NAME",
		GroupID: groupCluster,
		Short:   "Let new commits come again after rollback",
		Long: `Let go of the revision that spec.pin holds: the newest commit is taken up again, unless
spec.schedule, spec.windows or spec.promotion has it wait. The one that was rolled back comes again,
unless Git has a newer one: "mooring diff NAME --to newest" shows beforehand what that changes.

When the Mooring itself is kept in Git and has spec.pin there, take it out there.

` + clusterHelp + `
Exit code: 0 Ready, 1 not Ready or an error, 2 wrong usage.`,
		Example: "  mooring unpin prod -n mesh",
		Args:    args(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.unpin(cmd.Context(), o, args[0]) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	addPassFlags(cmd, &o.passFlags)
	return cmd
}

func (c *cli) unpin(ctx context.Context, o *rollbackOptions, name string) error {
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	m, err := cluster.mooring(ctx, name)
	if err != nil {
		return err
	}
	full := m.Namespace + "/" + m.Name
	if m.Spec.Pin == nil {
		said := "was not pinned"
		if rb := m.Status.Rollback; rb != nil {
			said += fmt.Sprintf("; the agent itself went back from %s, which does not come again: the next commit does", shortRevision(rb.Bad))
		}
		_, err := fmt.Fprintf(c.out, "Mooring %s: %s\n", full, said)
		return err
	}
	pinned := m.Spec.Pin.Revision
	if err := cluster.askUnedited(ctx, m, func() { m.Spec.Pin = nil }); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.errOut, "Mooring %s: no longer held at %s\n", full, shortRevision(pinned))
	if m.Spec.Suspend {
		_, err := fmt.Fprintf(c.out, "Mooring %s: unpinned, and suspended: mooring resume %s -n %s has new commits come\n", full, m.Name, m.Namespace)
		return err
	}
	done, err := c.awaitPass(ctx, cluster, m, o.passFlags)
	if done == nil || err != nil {
		return err
	}
	return c.reportPass(done)
}
