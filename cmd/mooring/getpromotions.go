package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) getPromotionsCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:   "promotions [NAME...]",
		Short: "Show which commit is where, from the first environment to the last, and what waits for what",
		Long: `Show each chain of Moorings that follow one another (spec.promotion.from) as a small table: a column
for each environment, from the first to the last, and a row for each commit, newest first, down
to the oldest that is in force anywhere. A cell says what became of the commit there. Below stands
what each commit on its way waits for, in full.

Where two environments follow one, the column says whom it comes after. A Mooring of another
namespace is shown as namespace/name, and one that cannot be seen as ?. A NAME shows the chain that
it is in.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get promotions -A
  mooring get promotions prod -n mesh
  mooring get promotions -o json`,
		RunE: func(cmd *cobra.Command, names []string) error { return c.getPromotions(cmd, o, names) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Moorings of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputJSON, outputYAML)
	return cmd
}

func (c *cli) getPromotions(cmd *cobra.Command, o *getOptions, names []string) error {
	found, err := c.find(cmd, o, names)
	if err != nil {
		return err
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	// A chain may go through namespaces. Who must not see them all sees their own part of it.
	all, err := cluster.moorings(cmd.Context(), metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		all, err = cluster.moorings(cmd.Context(), cluster.namespace)
	}
	if err != nil {
		return err
	}
	picked := map[types.NamespacedName]bool{}
	for i := range found {
		picked[client.ObjectKeyFromObject(&found[i])] = true
	}
	return c.printPromotions(o, chainsOf(all, picked), len(found) > 0, time.Now())
}

func (c *cli) printPromotions(o *getOptions, chains []chain, some bool, now time.Time) error {
	forms := make([]jsonChain, len(chains))
	for i, ch := range chains {
		forms[i] = ch.forJSON(now)
	}
	switch {
	case o.output == outputJSON:
		return writeJSON(c.out, forms)
	case o.output == outputYAML:
		return writeYAML(c.out, forms)
	case len(chains) == 0 && some:
		_, err := fmt.Fprintln(c.errOut, "No Mooring here follows another one, or is followed: new commits come from Git alone.")
		return err
	}
	color := paletteFor(c.color, c.out, c.getenv)
	for i, ch := range chains {
		if i > 0 {
			if _, err := fmt.Fprintln(c.out); err != nil {
				return err
			}
		}
		if err := ch.table(color, o.all, now).write(c.out); err != nil {
			return err
		}
		for _, line := range ch.waiting() {
			if _, err := fmt.Fprintln(c.out, "  "+line); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPromotionSubject of a commit: the columns of the environments need the room.
const maxPromotionSubject = 30

func (c chain) table(color palette, namespaces bool, now time.Time) *table {
	t := &table{head: []string{"COMMIT", "SUBJECT"}}
	for i, e := range c {
		head := c.nameOf(e, namespaces)
		if i > 0 && e.from != nil && e.from != c[i-1] {
			head += " (after " + c.nameOf(e.from, namespaces) + ")"
		}
		t.head = append(t.head, head)
	}
	for _, known := range c.commits() {
		row := []cell{plain(known.id[:leastDigits]), plain(orDash(cut(oneLine(known.subject), maxPromotionSubject)))}
		for _, e := range c {
			p := e.place(known, now)
			row = append(row, cell{text: p.text, paint: color.ofPlace(p)})
		}
		t.add(row...)
	}
	return t
}

// nameOf an environment: with its namespace where a chain goes through several.
func (c chain) nameOf(e *environment, namespaces bool) string {
	if namespaces || slices.ContainsFunc(c, func(other *environment) bool { return other.key.Namespace != e.key.Namespace }) {
		return e.key.String()
	}
	return e.key.Name
}

// ofPlace is the colour of a cell.
func (p palette) ofPlace(at place) func(string) string {
	switch at.state {
	case placeInForce:
		return p.green
	case v1alpha1.CandidateFailed, v1alpha1.ReasonDiverged, v1alpha1.ReasonDeclined, v1alpha1.ReasonPromotionFailed:
		return p.red
	case "", placeReplaced, v1alpha1.CandidateSkipped, placeMerged:
		return func(s string) string { return s }
	}
	return p.yellow
}

// waiting says in full what each environment waits for.
func (c chain) waiting() []string {
	var lines []string
	for _, e := range c {
		if e.m == nil {
			lines = append(lines, fmt.Sprintf("%s: it does not exist, or you may not read it", c.nameOf(e, false)))
			continue
		}
		name, said := c.nameOf(e, false), false
		for _, candidate := range e.candidates() {
			if !over(candidate) {
				said = true
				lines = append(lines, fmt.Sprintf("%s: %s %s", name, shortRevision(candidate.Revision), oneLine(cmp.Or(candidate.WaitsFor, candidate.State))))
			}
		}
		promoted := meta.FindStatusCondition(e.m.Status.Conditions, v1alpha1.ConditionPromoted)
		switch {
		case e.m.Spec.Suspend:
			lines = append(lines, name+": it is suspended")
		case e.m.Spec.Pin != nil:
			lines = append(lines, fmt.Sprintf("%s: %s is pinned: %s", name, shortRevision(e.m.Spec.Pin.Revision), cmp.Or(oneLine(e.m.Spec.Pin.Reason), "no reason was given")))
		case !said && promoted != nil && promoted.Status == metav1.ConditionFalse:
			lines = append(lines, name+": "+oneLine(promoted.Message))
		}
	}
	return lines
}

// jsonChain is a chain as JSON and YAML. Its names are a promise to the scripts that read it.
type jsonChain struct {
	Environments []jsonEnvironment `json:"environments"`
	// Commits newest first.
	Commits []jsonCommit `json:"commits"`
}

type jsonEnvironment struct {
	Mooring string `json:"mooring"`
	// Follows is the Mooring that it follows.
	Follows string                 `json:"follows,omitempty"`
	Mode    v1alpha1.PromotionMode `json:"mode,omitempty"`
	// Unseen is true for one that does not exist or must not be read.
	Unseen bool          `json:"unseen,omitempty"`
	Pin    *v1alpha1.Pin `json:"pin,omitempty"`
}

type jsonCommit struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject,omitempty"`
	// In holds the environments that have something to say of it.
	In []jsonPlace `json:"in"`
}

type jsonPlace struct {
	Mooring string `json:"mooring"`
	// State is InForce, Replaced, Failed, Skipped, Merged, or the reason for which it is not there yet.
	State    string       `json:"state"`
	WaitsFor string       `json:"waitsFor,omitempty"`
	Until    *metav1.Time `json:"until,omitempty"`
}

func (c chain) forJSON(now time.Time) jsonChain {
	j := jsonChain{Environments: []jsonEnvironment{}, Commits: []jsonCommit{}}
	for _, e := range c {
		form := jsonEnvironment{Mooring: e.key.String(), Unseen: e.m == nil}
		if e.m != nil {
			form.Pin = e.m.Spec.Pin
		}
		if e.from != nil {
			form.Follows, form.Mode = e.from.key.String(), e.m.Spec.Promotion.Mode
		}
		j.Environments = append(j.Environments, form)
	}
	for _, known := range c.commits() {
		form := jsonCommit{Commit: known.id, Subject: known.subject, In: []jsonPlace{}}
		for _, e := range c {
			p := e.place(known, now)
			if p.state == "" {
				continue
			}
			at := jsonPlace{Mooring: e.key.String(), State: p.state, WaitsFor: p.waitsFor}
			at.Until, _ = instant(p.until, time.UTC)
			form.In = append(form.In, at)
		}
		j.Commits = append(j.Commits, form)
	}
	return j
}
