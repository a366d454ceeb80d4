package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/proof"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type diffOptions struct {
	cluster     *clusterFlags
	files       []string
	sources     sync.Options
	output      string
	proof       bool
	proofStates int
	// from and to are revisions that are compared with each other.
	from, to string
}

func (c *cli) diffCommand() *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:     "diff NAME...\n  mooring diff -f FILE",
		GroupID: groupCluster,
		Short:   "Show what the newest commit would change in the cluster",
		Long: `Show the plan for the newest commit: what the agent would create, change and delete now. It
is fetched, rendered, checked and compared with the cluster here, with your own rights, and
nothing is written to the cluster. Values of Secrets are masked. Of what somebody changed, it says
who, how and when; where spec.drift.mode is Alarm, or somebody undoes each correction, it says
that it is left as it is, and that is a difference all the same.

NAME is a Mooring in the cluster. With -f the Mooring is read from a file, or from standard
input for "-", and need not be in the cluster yet; one with the same name that is there
already is taken to be replaced by it.

` + revisionsHelp + `

` + proofHelp + `

` + clusterHelp + `
Exit code: 0 no difference, 1 there is one (or a guard holds the plan), 2 it could not be told. What --proof finds
is 1 as well: there is no such route without a difference.`,
		Example: `  mooring diff prod -n mesh
  mooring diff -f mooring.yaml
  mooring diff prod --proof
  mooring diff prod --from 4f0c12a --to 9ab3c01
  kubectl kustomize moorings | mooring diff -f -`,
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && len(o.files) == 0:
				return usageErrorf(cmd.CommandPath(), "NAME of a Mooring is missing, or -f FILE")
			case len(names) > 0 && len(o.files) > 0:
				return usageErrorf(cmd.CommandPath(), "NAME and -f FILE do not go together")
			case o.proof && o.comparesRevisions():
				return usageErrorf(cmd.CommandPath(), "--proof is about what lives, and does not go together with --from and --to")
			}
			return cannotTell(c.diff(cmd, o, names))
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "a `file` with Moorings, or - for standard input; can be repeated")
	cmd.Flags().StringVar(&o.sources.StoreDir, "store", "", "folder for fetched commits (default is mooring/store in your cache folder)")
	addGitFlags(cmd.Flags(), &o.sources)
	cmd.Flags().BoolVar(&o.proof, "proof", false, "look for routes to nothing in every state between two writes of the plan")
	cmd.Flags().IntVar(&o.proofStates, "proof-states", proof.DefaultLimit, "how many states --proof looks at where there are more")
	o.addRevisionFlags(cmd)
	addOutputFlag(cmd, &o.output, outputText, outputJSON)
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.MarkFlagDirname("store")
	return cmd
}

func (c *cli) diff(cmd *cobra.Command, o *diffOptions, names []string) error {
	ctx := cmd.Context()
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	var wanted []*v1alpha1.Mooring
	if len(o.files) > 0 {
		wanted, err = c.mooringsFromFiles(ctx, cluster, o.files, cmd.Flags().Changed("namespace"))
	} else {
		wanted, err = cluster.named(ctx, names)
	}
	if err != nil {
		return err
	}
	syncer, err := c.previewer(cluster, o.sources)
	if err != nil {
		return err
	}
	if o.comparesRevisions() {
		return c.diffRevisions(ctx, o, syncer, wanted)
	}
	var errs []error
	var previews []preview
	for _, m := range wanted {
		p := preview{mooring: m, outcome: syncer.Preview(ctx, m)}
		if err := p.err(); err != nil {
			errs = append(errs, err)
		}
		previews = append(previews, p)
	}
	if o.proof {
		errs = append(errs, proveAll(ctx, cluster.config, previews, o.proofStates))
	}
	if err := c.printPreviews(o.output, previews); err != nil {
		return err
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, p := range previews {
		if p.differs() {
			return &exitError{code: exitFound}
		}
	}
	return nil
}

// previewer makes passes that stop at the plan.
func (c *cli) previewer(cluster *cluster, o sync.Options) (*sync.Syncer, error) {
	var err error
	if o.StoreDir, err = c.storeDir(o.StoreDir); err != nil {
		return nil, err
	}
	o.Version = c.version
	syncer, err := sync.New(cluster.config, o)
	if err != nil {
		return nil, fmt.Errorf("prepare a preview: %w", err)
	}
	return syncer, nil
}

// storeDir is where fetched commits are kept from one diff to the next. It can be deleted at any time.
func (c *cli) storeDir(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", withHint(fmt.Errorf("find a folder for fetched commits: %w", err), "name one with --store")
	}
	return filepath.Join(cache, "mooring", "store"), nil
}

// named reads Moorings from the cluster.
func (c *cluster) named(ctx context.Context, names []string) ([]*v1alpha1.Mooring, error) {
	var found []*v1alpha1.Mooring
	for _, name := range names {
		m, err := c.mooring(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// preview is a Mooring and what a pass over it would do.
type preview struct {
	mooring *v1alpha1.Mooring
	outcome sync.Outcome
	proof   *proof.Report // nil where nobody asked, and where there is nothing to prove
	still   bool          // nothing is to prove, because nothing changes
}

func (p preview) name() string {
	return p.mooring.Namespace + "/" + p.mooring.Name
}

// err is why there is no plan.
func (p preview) err() error {
	if p.outcome.Err == nil {
		return nil
	}
	return fmt.Errorf("diff Mooring %s: %s: %w", p.name(), p.outcome.Reason, p.outcome.Err)
}

func (p preview) differs() bool {
	return p.outcome.Plan != nil && (p.outcome.Plan.Changes() || p.outcome.Plan.Guard != nil || p.outcome.Plan.Drifted())
}

func (c *cli) printPreviews(output string, previews []preview) error {
	if output == outputJSON {
		return writeJSON(c.out, jsonPreviews(previews))
	}
	color := paletteFor(c.color, c.out, c.getenv)
	notes := paletteFor(c.color, c.errOut, c.getenv)
	for _, p := range previews {
		for _, f := range p.outcome.Findings {
			_, _ = fmt.Fprintln(c.errOut, notes.ofLevel(string(f.Level))(f.String()))
		}
		if p.outcome.Plan == nil {
			continue
		}
		if p.outcome.Held != nil {
			c.note("a window holds this plan: %v", p.outcome.Held)
		}
		if _, err := fmt.Fprintln(c.out, color.bold(fmt.Sprintf("Mooring %s, %s", p.name(), p.outcome.Newest))); err != nil {
			return err
		}
		if err := p.outcome.Plan.Print(c.out, color.ofAction); err != nil {
			return err
		}
		if err := printProof(c.out, color, p); err != nil {
			return err
		}
	}
	return nil
}

// ofAction is the looks of a line in a plan: what comes is green, what goes red, what changes yellow.
func (p palette) ofAction(action apply.Action, line string) string {
	switch action {
	case apply.Create:
		return p.green(line)
	case apply.Delete:
		return p.red(line)
	case apply.Update, apply.Replace:
		return p.yellow(line)
	}
	return line
}

// jsonPreview is a preview as JSON. Its names are a promise to the scripts that read it.
type jsonPreview struct {
	Mooring  string        `json:"mooring"`
	Revision string        `json:"revision,omitempty"`
	Error    string        `json:"error,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Differs  bool          `json:"differs"`
	Guard    string        `json:"guard,omitempty"`
	Held     string        `json:"held,omitempty"` // by a window that is closed
	Steps    []jsonStep    `json:"steps"`
	Notes    []string      `json:"notes,omitempty"`
	Findings []jsonFinding `json:"findings"`
	Proof    *jsonProof    `json:"proof,omitempty"`
}

type jsonStep struct {
	Wave   string       `json:"wave"`
	After  apply.Gate   `json:"after,omitempty"` // what is waited for before it
	Action apply.Action `json:"action"`
	Object jsonID       `json:"object"`
	Origin string       `json:"origin,omitempty"`
	Drift  apply.Drift  `json:"drift,omitempty"` // what somebody made of it; empty for a commit's change
	Reason string       `json:"reason,omitempty"`
	Fields []jsonField  `json:"fields,omitempty"`
}

type jsonField struct {
	Path    string `json:"path"`
	Live    any    `json:"live"`
	Want    any    `json:"want"`
	Manager string `json:"manager,omitempty"`
	// Operation and ChangedAt are of the manager's last write to the object.
	Operation string     `json:"operation,omitempty"`
	ChangedAt *time.Time `json:"changedAt,omitempty"`
}

func jsonPreviews(previews []preview) []jsonPreview {
	all := make([]jsonPreview, len(previews))
	for i, p := range previews {
		all[i] = jsonPreview{
			Mooring: p.name(), Differs: p.differs(), Steps: []jsonStep{}, Findings: findingsForJSON(p.outcome.Findings),
		}
		if !p.outcome.Newest.IsZero() {
			all[i].Revision = p.outcome.Newest.String()
		}
		if p.outcome.Err != nil {
			all[i].Error, all[i].Reason = p.outcome.Err.Error(), p.outcome.Reason
		}
		if p.outcome.Held != nil {
			all[i].Held = p.outcome.Held.Error()
		}
		if p.outcome.Plan != nil {
			all[i].add(p.outcome.Plan)
			all[i].Proof = proofForJSON(p.proof)
		}
	}
	return all
}

// add the steps of a plan. What stays as it is needs no line.
func (j *jsonPreview) add(plan *apply.Plan) {
	if plan.Guard != nil {
		j.Guard = plan.Guard.Message
	}
	j.Notes = plan.Notes
	var gate apply.Gate
	for _, wave := range plan.Waves {
		for _, step := range wave.Steps {
			if step.Action == apply.Unchanged {
				continue
			}
			s := jsonStep{Wave: wave.Name, After: gate, Action: step.Action, Object: jsonID(step.ID), Origin: step.Origin.String(), Drift: step.Drift, Reason: step.Reason}
			for _, d := range step.Diff {
				field := jsonField{Path: d.Path, Live: d.Live, Want: d.Want, Manager: d.Manager, Operation: d.Operation}
				if !d.ChangedAt.IsZero() {
					field.ChangedAt = new(d.ChangedAt.UTC())
				}
				s.Fields = append(s.Fields, field)
			}
			j.Steps = append(j.Steps, s)
		}
		gate = wave.Gate
	}
}
