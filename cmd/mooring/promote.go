package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type promoteOptions struct {
	cluster  *clusterFlags
	revision string
	reason   string
	passFlags
}

func (c *cli) promoteCommand() *cobra.Command {
	o := &promoteOptions{}
	cmd := &cobra.Command{
		Use:     "promote NAME",
		GroupID: groupCluster,
		Short:   "Let a commit through to this environment that waits for a person's word",
		Long: `Give the word that spec.promotion.approval: Manual waits for: the newest commit that waits for it
in status.promotion may come to this environment, or the one of --revision, which need not be
proven yet. The word counts for that commit alone; soak, windows, readyExpr and metrics are asked
all the same. "mooring get promotions" shows what is where, and what waits for what.

` + clusterHelp + `
Exit code: 0 the commit is let through, 1 it still waits, or is not Ready here, or an error, 2 wrong usage.`,
		Example: `  mooring promote prod -n mesh
  mooring promote prod -n mesh --revision 4f0c12a --reason "release 12, seen by Ada"`,
		Args: args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.promote(cmd.Context(), o, args[0]) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	cmd.Flags().StringVar(&o.revision, "revision", "", "the `revision` to let through (its commit's id, at least seven digits, is enough)")
	cmd.Flags().StringVar(&o.reason, "reason", "", "`why`; it is told in history")
	addPassFlags(cmd, &o.passFlags)
	_ = cmd.RegisterFlagCompletionFunc("revision", o.cluster.completeRevisionOf(promotable))
	return cmd
}

func (c *cli) promote(ctx context.Context, o *promoteOptions, name string) error {
	cluster, m, err := o.cluster.working(ctx, "promote to", name)
	if err != nil {
		return err
	}
	candidate, err := chooseCandidate(m, o.revision)
	if err != nil {
		return err
	}
	word := strings.TrimSpace(candidate.Revision + " " + oneLine(o.reason))
	if err := cluster.askWith(ctx, m, func() { metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.PromoteAnnotation, word) }); err != nil {
		return err
	}
	about := ""
	if candidate.Subject != "" {
		about = fmt.Sprintf(" %q", oneLine(candidate.Subject))
	}
	_, _ = fmt.Fprintf(c.errOut, "Mooring %s/%s: %s%s may come\n", m.Namespace, m.Name, shortRevision(candidate.Revision), about)
	if candidate.State != v1alpha1.ReasonAwaitingApproval {
		c.note("besides the word, it waits for something else: it %s", candidate.WaitsFor)
	}
	done, err := c.awaitPass(ctx, cluster, m, o.passFlags)
	if done == nil || err != nil {
		return err
	}
	return c.reportPromotion(done, candidate.Revision)
}

// reportPromotion prints how the pass ended, and whether the commit is through.
func (c *cli) reportPromotion(m *v1alpha1.Mooring, revision string) error {
	outcome := c.reportPass(m)
	promoted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPromoted)
	if promoted != nil {
		paint := paletteFor(c.color, c.out, c.getenv).ofStatus(promoted.Status)
		if _, err := fmt.Fprintf(c.out, "  %s\n  %s\n", paint(fmt.Sprintf("Promoted=%s %s", promoted.Status, promoted.Reason)), indent(promoted.Message)); err != nil {
			return err
		}
	}
	if waits := candidateOf(m, revision); waits != nil && waits.State != v1alpha1.ReasonAwaitingMerge {
		return &exitError{code: exitFound}
	}
	return outcome
}

// candidateOf is a commit that is on its way to a Mooring; nil for one that is not.
func candidateOf(m *v1alpha1.Mooring, revision string) *v1alpha1.PromotionCandidate {
	if m.Status.Promotion == nil {
		return nil
	}
	for i := range m.Status.Promotion.Candidates {
		if c := &m.Status.Promotion.Candidates[i]; sameCommit(c.Revision, revision) {
			return c
		}
	}
	return nil
}

// over says that a candidate will not come any more.
func over(c v1alpha1.PromotionCandidate) bool {
	return c.State == v1alpha1.CandidateFailed || c.State == v1alpha1.CandidateSkipped
}

// promotable offers what may still come.
func promotable(m *v1alpha1.Mooring) []cobra.Completion {
	var all []cobra.Completion
	for _, c := range candidatesOf(m) {
		if !over(c) {
			all = append(all, cobra.CompletionWithDesc(shortCommit(c.Revision), strings.TrimSpace(c.State+" "+oneLine(c.Subject))))
		}
	}
	return all
}

func candidatesOf(m *v1alpha1.Mooring) []v1alpha1.PromotionCandidate {
	if m.Status.Promotion == nil {
		return nil
	}
	return m.Status.Promotion.Candidates
}

// chooseCandidate is the commit that a word is given for.
func chooseCandidate(m *v1alpha1.Mooring, word string) (*v1alpha1.PromotionCandidate, error) {
	fail := func(hint, format string, args ...any) (*v1alpha1.PromotionCandidate, error) {
		return nil, withHint(fmt.Errorf("promote to Mooring %s/%s: %w", m.Namespace, m.Name, fmt.Errorf(format, args...)), "%s", hint)
	}
	look := fmt.Sprintf("mooring get promotions %s -n %s shows what is where, and what waits for what", m.Name, m.Namespace)
	all := candidatesOf(m)
	switch {
	case m.Spec.Promotion == nil:
		return fail(fmt.Sprintf("new commits come by themselves; mooring sync %s -n %s asks for them now", m.Name, m.Namespace), "it has no spec.promotion, so it follows no other environment")
	case m.Spec.Promotion.Approval != v1alpha1.ApprovalManual:
		return fail(look, "spec.promotion.approval is not Manual, so nothing waits for a person's word")
	case m.Spec.Pin != nil:
		return fail(fmt.Sprintf("mooring unpin %s -n %s", m.Name, m.Namespace), "it is pinned to %s, so nothing comes", shortRevision(m.Spec.Pin.Revision))
	case len(all) == 0:
		return fail(look, "there is no commit in Mooring %s that is newer than what is here", m.Spec.Promotion.From.Name)
	case word == "":
		for i := range all {
			if all[i].State == v1alpha1.ReasonAwaitingApproval {
				return &all[i], nil
			}
		}
		return fail(adviseCandidates(m, all, look), "no commit waits for a person's word: %s %s", shortRevision(all[0].Revision), all[0].WaitsFor)
	}
	revisions := make([]string, len(all))
	for i, c := range all {
		revisions[i] = c.Revision
	}
	revision, err := pickRevision(word, revisions)
	if err != nil {
		return fail(look, "candidates of Mooring %s: %w", m.Spec.Promotion.From.Name, err)
	}
	candidate := candidateOf(m, revision)
	if over(*candidate) {
		return fail(look, "%s will not come any more: it %s", shortRevision(revision), candidate.WaitsFor)
	}
	return candidate, nil
}

// adviseCandidates says what may be done where none waits for a word.
func adviseCandidates(m *v1alpha1.Mooring, all []v1alpha1.PromotionCandidate, look string) string {
	for _, c := range all {
		if !over(c) {
			return fmt.Sprintf("mooring promote %s -n %s --revision %s gives the word beforehand", m.Name, m.Namespace, shortCommit(c.Revision))
		}
	}
	return look
}
