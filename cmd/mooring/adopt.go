package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type adoptOptions struct {
	cluster *clusterFlags
	from    []string
	dryRun  bool
	yes     bool
	force   bool
	sources sync.Options
	timeout time.Duration
}

func (c *cli) adoptCommand() *cobra.Command {
	o := &adoptOptions{}
	cmd := &cobra.Command{
		Use:     "adopt NAME",
		GroupID: groupCluster,
		Short:   "Take objects over from Helm, Flux, Argo CD or another tool, once",
		Long: `Take over what another tool manages. Mooring refuses to touch such an object unasked, because
two tools that hold one object put it back and forth, or one deletes it under the other.

Without --yes nothing is written: the command shows whose the objects are, which fields change,
and what to do about the other tool. With --yes the agent may adopt them, for the newest
revision only: fields of that tool that Git does not have are removed, and so are the labels and
annotations by which the tool knows the objects. Nothing else of the tool is touched, such as the
release that Helm keeps in a Secret.

A tool that is at work, such as a Flux Kustomization that is not suspended, would put everything
back: --yes refuses until it is stopped, or --force is given.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring adopt prod -n mesh
  mooring adopt prod -n mesh --from helm --yes`,
		Args: args(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.yes && o.dryRun {
				return usageErrorf(cmd.CommandPath(), "--yes and --dry-run do not go together")
			}
			tools, err := parseTools(o.from)
			if err != nil {
				return usageErrorf(cmd.CommandPath(), "%w", err)
			}
			return c.adopt(cmd.Context(), o, args[0], tools)
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeOneName
	cmd.Flags().StringSliceVar(&o.from, "from", nil, "the `tools` to adopt from: "+toolNames()+" (default is all)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would be adopted, and write nothing; this is the default")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "let the agent adopt what is shown")
	cmd.Flags().BoolVar(&o.force, "force", false, "adopt although a tool is at work that will put everything back")
	cmd.Flags().StringVar(&o.sources.StoreDir, "store", "", "folder for fetched commits (default is mooring/store in your cache folder)")
	addGitFlags(cmd.Flags(), &o.sources)
	cmd.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait for the agent's pass")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(strings.Split(toolNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("store")
	return cmd
}

func toolNames() string {
	var names []string
	for _, t := range apply.Tools() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// parseTools gives all when none is named.
func parseTools(names []string) ([]apply.Tool, error) {
	if len(names) == 0 {
		return apply.Tools(), nil
	}
	var tools []apply.Tool
	for _, name := range names {
		if !slices.Contains(apply.Tools(), apply.Tool(name)) {
			return nil, fmt.Errorf("--from %s is not known; choose of %s", name, toolNames())
		}
		tools = append(tools, apply.Tool(name))
	}
	return tools, nil
}

func (c *cli) adopt(ctx context.Context, o *adoptOptions, name string, from []apply.Tool) error {
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	m, err := cluster.mooring(ctx, name)
	if err != nil {
		return err
	}
	syncer, err := c.previewer(cluster, o.sources)
	if err != nil {
		return err
	}
	full := m.Namespace + "/" + m.Name
	out := syncer.PreviewAdoption(ctx, m, from)
	if out.Err != nil {
		return fmt.Errorf("adopt for Mooring %s: %s: %w", full, out.Reason, out.Err)
	}
	found := adoptionOf(out.Plan)
	if len(found.holders) == 0 {
		_, err := fmt.Fprintf(c.out, "Mooring %s, %s: nothing is managed by another tool\n", full, out.Newest)
		return err
	}
	if err := c.printAdoption(full, out, found); err != nil || !o.yes {
		return err
	}
	if len(found.plan.Fights) > 0 && !o.force {
		return withHint(fmt.Errorf("adopt for Mooring %s: a tool is at work that would put everything back", full), "stop it first, as shown above, or use --force")
	}
	if m.Spec.Suspend {
		return withHint(fmt.Errorf("adopt for Mooring %s: it is suspended, so the agent does nothing with it", full), "mooring resume %s -n %s", m.Name, m.Namespace)
	}
	return c.askToAdopt(ctx, cluster, m, sync.Adoption(out.Newest, found.tools), o.timeout)
}

// askToAdopt writes the word on the Mooring, and waits for the pass.
func (c *cli) askToAdopt(ctx context.Context, cluster *cluster, m *v1alpha1.Mooring, word string, patience time.Duration) error {
	patch := client.MergeFrom(m.DeepCopy())
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AdoptAnnotation, word)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ReconcileAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	if err := cluster.Patch(ctx, m, patch, fieldManager); err != nil {
		return fmt.Errorf("annotate Mooring %s/%s: %w", m.Namespace, m.Name, err)
	}
	_, _ = fmt.Fprintf(c.errOut, "Mooring %s/%s: may adopt %s, waiting for the pass\n", m.Namespace, m.Name, word)
	done, err := cluster.waitForPass(ctx, m, patience)
	if err != nil {
		return err
	}
	return c.reportPass(done)
}

// foundAdoption is what of a plan is an adoption.
type foundAdoption struct {
	plan    *apply.Plan
	holders []apply.Holder // each once
	tools   []apply.Tool
}

func adoptionOf(plan *apply.Plan) foundAdoption {
	found := foundAdoption{plan: &apply.Plan{Unit: plan.Unit, Fights: plan.Fights}}
	for _, wave := range plan.Waves {
		wave.Steps = slices.DeleteFunc(slices.Clone(wave.Steps), func(s apply.Step) bool { return len(s.From) == 0 })
		if len(wave.Steps) == 0 {
			continue
		}
		wave.Gate = ""
		found.plan.Waves = append(found.plan.Waves, wave)
		for _, s := range wave.Steps {
			for _, h := range s.From {
				same := func(other apply.Holder) bool {
					return h.Tool == other.Tool && h.Kind == other.Kind && h.Namespace == other.Namespace && h.Name == other.Name
				}
				if !slices.ContainsFunc(found.holders, same) {
					found.holders = append(found.holders, h)
				}
				if !slices.Contains(found.tools, h.Tool) {
					found.tools = append(found.tools, h.Tool)
				}
			}
		}
	}
	slices.Sort(found.tools)
	return found
}

func (c *cli) printAdoption(full string, out sync.Outcome, found foundAdoption) error {
	color := paletteFor(c.color, c.out, c.getenv)
	if _, err := fmt.Fprintln(c.out, color.bold(fmt.Sprintf("Mooring %s, %s", full, out.Newest))); err != nil {
		return err
	}
	if err := found.plan.Print(c.out, color.ofAction); err != nil {
		return err
	}
	var lines []string
	for _, fight := range found.plan.Fights {
		lines = append(lines, color.yellow("at work: "+fight))
	}
	for _, h := range found.holders {
		lines = append(lines, fmt.Sprintf("afterwards, %s: %s.", h.Tool, h.Aftercare()))
	}
	_, err := fmt.Fprintln(c.out, strings.Join(lines, "\n"))
	return err
}
