package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type historyOptions struct {
	cluster *clusterFlags
	output  string
}

func (c *cli) historyCommand() *cobra.Command {
	o := &historyOptions{}
	cmd := &cobra.Command{
		Use:     "history NAME",
		GroupID: groupCluster,
		Short:   "Show what was applied when, by what or whom, and how it fared",
		Long: `Show the revisions that were applied, newest first: when, what caused it (commit, spec, confirm,
override, promotion, rollback), the commit's author and subject, how many objects were created
(+), changed (~) and deleted (-), how long that took, and what became of it.

With -o wide it says how long each stage took, the author's address, the first objects that were
changed, and whose signature let a revision in where one was asked for. "mooring diff NAME --from REV --to REV" shows what differs between two of them, and
"mooring rollback NAME --to REV" goes back to one.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring history prod -n mesh
  mooring history prod -n mesh -o wide
  mooring history prod -o json`,
		Args: args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.history(cmd.Context(), o, args[0]) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	addOutputFlag(cmd, &o.output, outputTable, outputWide, outputJSON, outputYAML)
	return cmd
}

// jsonHistory is what was applied, as JSON and YAML. Its names are a promise to the scripts that read it.
type jsonHistory struct {
	Mooring string `json:"mooring"`
	// Pin that holds a revision now.
	Pin     *v1alpha1.Pin `json:"pin,omitempty"`
	History []jsonApplied `json:"history"`
}

type jsonApplied struct {
	// State is inForce, replaced or failed.
	State string `json:"state"`
	// Pinned is true for the revision in force that is held.
	Pinned bool `json:"pinned,omitempty"`
	v1alpha1.HistoryEntry
}

// What became of a revision.
const (
	stateInForce  = "inForce"
	stateReplaced = "replaced"
	stateFailed   = "failed"
)

func (c *cli) history(ctx context.Context, o *historyOptions, name string) error {
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	m, err := cluster.mooring(ctx, name)
	if err != nil {
		return err
	}
	j := historyOf(m)
	switch {
	case o.output == outputJSON:
		return writeJSON(c.out, j)
	case o.output == outputYAML:
		return writeYAML(c.out, j)
	case len(j.History) == 0:
		_, err := fmt.Fprintf(c.errOut, "Nothing was applied yet by Mooring %s.\n", j.Mooring)
		return err
	}
	color := paletteFor(c.color, c.out, c.getenv)
	t := historyTable(j, color, time.Now(), o.output == outputWide)
	if o.output == outputTable {
		t.width = widthOf(c.out)
	}
	return t.write(c.out)
}

func historyOf(m *v1alpha1.Mooring) jsonHistory {
	j := jsonHistory{Mooring: m.Namespace + "/" + m.Name, Pin: m.Spec.Pin, History: []jsonApplied{}}
	for i, e := range m.Status.History {
		a := jsonApplied{State: stateReplaced, HistoryEntry: e}
		inForce := i == 0 && e.ReplacedAt == nil && sameCommit(e.Revision, m.Status.LastAppliedRevision)
		switch {
		case inForce && e.Failed == "":
			a.State = stateInForce
		case e.Failed != "":
			a.State = stateFailed
		}
		a.Pinned = inForce && m.Spec.Pin != nil && sameCommit(e.Revision, m.Spec.Pin.Revision)
		j.History = append(j.History, a)
	}
	return j
}

func historyTable(j jsonHistory, color palette, now time.Time, wide bool) *table {
	t := &table{head: []string{"REVISION", "APPLIED", "BY", "AUTHOR", "SUBJECT", "CHANGES", "TOOK", "STATE", "REASON"}}
	var stages []string
	signed := wide && slices.ContainsFunc(j.History, func(a jsonApplied) bool { return a.SignedBy != "" })
	if wide {
		stages = stagesOf(j)
		at := slices.Index(t.head, "TOOK") + 1
		for i, stage := range stages {
			t.head = slices.Insert(t.head, at+i, strings.ToUpper(stage))
		}
		t.head = append(t.head, "CHANGED")
		if signed {
			t.head = append(t.head, "SIGNED BY")
		}
	}
	for _, a := range j.History {
		applied, author, reason := duration.HumanDuration(now.Sub(a.AppliedAt.Time))+" ago", authorName(a.Author), cmp.Or(a.Reason, a.Failed)
		if wide {
			applied, author = a.AppliedAt.UTC().Format(time.RFC3339), a.Author
		}
		var sum time.Duration
		for _, took := range a.Took {
			sum += took.Duration
		}
		row := []cell{
			plain(shortRevision(a.Revision)), plain(applied), plain(orDash(a.By)), plain(orDash(oneLine(author))), plain(orDash(cut(oneLine(a.Subject), maxSubject))),
			plain(fmt.Sprintf("+%d ~%d -%d", a.Created, a.Configured, a.Deleted)), plain(took(sum)),
		}
		for _, stage := range stages {
			row = append(row, plain(took(a.Took[stage].Duration)))
		}
		row = append(row, a.state(color, now), plain(orDash(oneLine(reason))))
		if wide {
			row = append(row, plain(orDash(strings.Join(a.Changed, ", "))))
		}
		if signed {
			row = append(row, plain(orDash(a.SignedBy)))
		}
		t.add(row...)
	}
	return t
}

// maxSubject of a commit in a table: what Git's own tools want it to be at most.
const maxSubject = 50

// stagesOf a history, in the order in which a pass comes to them.
func stagesOf(j jsonHistory) []string {
	all := []string{"fetch", "render", "check", "plan", "apply"}
	more := map[string]bool{}
	for _, a := range j.History {
		for stage := range a.Took {
			if !slices.Contains(all, stage) {
				more[stage] = true
			}
		}
	}
	return append(all, slices.Sorted(maps.Keys(more))...)
}

// took writes a time so that the digits say something: 1.4s, 38ms.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return max(d.Round(time.Millisecond), time.Millisecond).String()
}

// state in words.
func (a jsonApplied) state(color palette, now time.Time) cell {
	ago := func(t *metav1.Time) string { return duration.HumanDuration(now.Sub(t.Time)) }
	pinned := ""
	if a.Pinned {
		pinned = ", pinned"
	}
	switch {
	case a.State == stateFailed && a.ReplacedAt == nil:
		return cell{text: "failed" + pinned, paint: color.red}
	case a.State == stateFailed:
		return cell{text: "failed, replaced " + ago(a.ReplacedAt) + " ago", paint: color.red}
	case a.State == stateReplaced && a.ReplacedAt == nil:
		return plain("replaced")
	case a.State == stateReplaced:
		return plain("replaced " + ago(a.ReplacedAt) + " ago")
	case a.HealthySince == nil:
		return cell{text: "in force, not healthy" + pinned, paint: color.yellow}
	}
	return cell{text: "in force, healthy for " + ago(a.HealthySince) + pinned, paint: color.green}
}
