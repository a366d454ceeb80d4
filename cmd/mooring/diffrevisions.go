package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// wordNewest stands for the commit that Git has now.
const wordNewest = "newest"

const revisionsHelp = `With --from or --to two revisions are compared with each other, whatever lives: what the Mooring's
path renders to in the one and in the other. Each is one that "mooring history NAME" or "mooring get
promotions" tells of, the whole id of any commit, or newest for what Git has now; one that is left out
is the one in force.`

// comparesRevisions says whether the command line asks for that.
func (o *diffOptions) comparesRevisions() bool { return o.from != "" || o.to != "" }

func (o *diffOptions) addRevisionFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.from, "from", "", "compare this `revision` with --to (its commit's id, at least seven digits, is enough)")
	cmd.Flags().StringVar(&o.to, "to", "", "compare --from with this `revision`, or with newest")
	offer := o.cluster.completeRevisionOf(func(m *v1alpha1.Mooring) []cobra.Completion {
		return append(append(inHistory(m), promotable(m)...), cobra.CompletionWithDesc(wordNewest, "what Git has now"))
	})
	_ = cmd.RegisterFlagCompletionFunc("from", offer)
	_ = cmd.RegisterFlagCompletionFunc("to", offer)
}

// diffRevisions compares two revisions of each Mooring.
func (c *cli) diffRevisions(ctx context.Context, o *diffOptions, syncer *sync.Syncer, wanted []*v1alpha1.Mooring) error {
	all := []jsonComparison{}
	color := paletteFor(c.color, c.out, c.getenv)
	differs := false
	var errs []error
	for _, m := range wanted {
		compared, err := c.compareRevisions(ctx, o, syncer, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("diff Mooring %s/%s: %w", m.Namespace, m.Name, err))
			continue
		}
		differs = differs || compared.Plan.Changes()
		if o.output == outputJSON {
			all = append(all, comparisonForJSON(m, compared))
			continue
		}
		title := fmt.Sprintf("Mooring %s/%s, from %s to %s", m.Namespace, m.Name, compared.From, compared.To)
		if _, err := fmt.Fprintln(c.out, color.bold(title)); err != nil {
			return err
		}
		if err := compared.Plan.Print(c.out, color.ofAction); err != nil {
			return err
		}
	}
	if o.output == outputJSON {
		errs = append(errs, writeJSON(c.out, all))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if differs {
		return &exitError{code: exitFound}
	}
	return nil
}

func (c *cli) compareRevisions(ctx context.Context, o *diffOptions, syncer *sync.Syncer, m *v1alpha1.Mooring) (sync.Comparison, error) {
	from, err := revisionFor(o.from, m)
	if err != nil {
		return sync.Comparison{}, err
	}
	to, err := revisionFor(o.to, m)
	if err != nil {
		return sync.Comparison{}, err
	}
	return syncer.Compare(ctx, m, from, to)
}

// revisionFor makes a revision of what somebody typed; the zero one stands for the newest.
func revisionFor(word string, m *v1alpha1.Mooring) (repos.Revision, error) {
	switch {
	case word == wordNewest:
		return repos.Revision{}, nil
	case word == "" && m.Status.LastAppliedRevision == "":
		return repos.Revision{}, withHint(errors.New("nothing is in force yet"), "name both with --from and --to; newest is what Git has now")
	case word == "":
		return repos.ParseRevision(m.Status.LastAppliedRevision)
	}
	known := append(revisionsOf(m), m.Status.LastAppliedRevision, m.Status.LastAttemptedRevision)
	for _, candidate := range candidatesOf(m) {
		known = append(known, candidate.Revision)
	}
	revision, err := pickRevision(word, known)
	if err == nil {
		return repos.ParseRevision(revision)
	}
	for _, whole := range []string{word, "sha1:" + word} {
		if rev, err := repos.ParseRevision(whole); err == nil {
			return rev, nil
		}
	}
	return repos.Revision{}, withHint(err, "mooring history %s -n %s lists what was applied; of any other commit write the whole id", m.Name, m.Namespace)
}

// jsonComparison is what differs between two revisions, as JSON. Its names are a promise to the scripts that read it.
type jsonComparison struct {
	Mooring string        `json:"mooring"`
	From    string        `json:"from"`
	To      string        `json:"to"`
	Differs bool          `json:"differs"`
	Changes []jsonChanged `json:"changes"`
}

type jsonChanged struct {
	Action apply.Action       `json:"action"`
	Object jsonID             `json:"object"`
	Origin string             `json:"origin,omitempty"` // of a deleted object: where it was
	Fields []jsonChangedField `json:"fields,omitempty"`
}

type jsonChangedField struct {
	Path string `json:"path"`
	From any    `json:"from"`
	To   any    `json:"to"`
}

func comparisonForJSON(m *v1alpha1.Mooring, c sync.Comparison) jsonComparison {
	j := jsonComparison{
		Mooring: m.Namespace + "/" + m.Name, From: c.From.String(), To: c.To.String(), Differs: c.Plan.Changes(), Changes: []jsonChanged{},
	}
	for step := range c.Plan.Steps() {
		if step.Action == apply.Unchanged {
			continue
		}
		changed := jsonChanged{Action: step.Action, Object: jsonID(step.ID), Origin: step.Origin.String()}
		for _, d := range step.Diff {
			changed.Fields = append(changed.Fields, jsonChangedField{Path: d.Path, From: d.Live, To: d.Want})
		}
		j.Changes = append(j.Changes, changed)
	}
	return j
}
