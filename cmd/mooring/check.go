package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
)

type checkOptions struct {
	root     string
	files    []string
	output   string
	show     string
	fix      bool
	failOn   string
	ignore   []string
	suppress []string
	policies []string
	cluster  *checkCluster
}

func (c *cli) checkCommand() *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:     "check PATH...\n  mooring check -f FILE...",
		GroupID: groupFiles,
		Short:   "Find the faults in folders or files that would keep them out of the mesh",
		Long: `Render a folder and look at its objects as Istio would, strictly: what Istio would accept and
then drop in silence is a fault too. A finding of level Error keeps a commit out of the cluster;
the agent uses the same rules. mooring explain CODE says what a finding means for the traffic.

` + worktreeHelp + `
Several are looked at one by one, and reported together.

With -f single files are looked at, or standard input for "-", as plain YAML with one or more
documents. What only other files could tell is reported as not checked.

With --cluster the objects are laid over what lives in the cluster, as a commit would be: a host
that is missing among the files may be there, and a fault that the mesh has already is no fault of
the commit. It is read with your own rights, and nothing is written.
` + clusterHelp + `

A finding is accepted where it is, with an annotation of the object that gives the reason,
  mooring.dev/suppress: "MOOR012: the old clients go in May"
or for this run with --suppress and --ignore. What is accepted is counted, and listed by
--show all.

--policy adds rules of the house: documents of kind CheckPolicy whose expressions are written in
CEL, as those of Kubernetes' ValidatingAdmissionPolicy.

With --fix the files are rewritten where earlier versions of Istio had other names for the same,
with their comments and their order kept: retired fields, and objects of kinds that are gone. What
has no exact translation is left, with the reason and YAML to start from.

Exit code: 0 nothing found at or above the level of --fail-on, 1 something found, 2 it could not
be checked.`,
		Example: `  mooring check overlays/prod
  mooring check overlays/*
  mooring check -f route.yaml
  kubectl get virtualservices -n shop -o yaml | mooring check -f -
  mooring check overlays/prod --fail-on Warning --ignore IST0102
  mooring check overlays/prod --suppress 'IST0118=Service/shop/*'
  mooring check overlays/prod --policy policies
  mooring check overlays/prod --cluster --context prod
  mooring check overlays/prod --mooring prod -n mesh
  mooring check overlays/prod --fix
  mooring check overlays/prod -o sarif > mooring.sarif
  mooring check overlays/prod -o json | jq '.findings[] | select(.level == "Error")'`,
		ValidArgsFunction: completeChecked,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cannotTell(c.check(cmd, o, args))
		},
	}
	c.addCheckFlags(cmd, o)
	return cmd
}

func (c *cli) addCheckFlags(cmd *cobra.Command, o *checkOptions) {
	flags := cmd.Flags()
	flags.StringVar(&o.root, "root", "", "the root of the repository; default is the nearest folder above PATH with a .git")
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a `file` instead of a PATH, or - for standard input; can be repeated")
	flags.Var(choice(&o.failOn, string(check.Error), string(check.Warning), string(check.Info)), "fail-on", "the mildest level of a finding that gives exit code 1")
	flags.StringSliceVar(&o.ignore, "ignore", nil, "`codes` of findings that nobody wants to hear of, such as MOOR012,IST0102")
	flags.StringArrayVar(&o.suppress, "suppress", nil, "accept the findings of a code about some objects, as `CODE=RESOURCE`, such as 'IST0118=Service/shop/*'; can be repeated")
	flags.StringArrayVar(&o.policies, "policy", nil, "a `file` with rules of the house (documents of kind CheckPolicy), or a folder of such files; can be repeated")
	flags.BoolVar(&o.fix, "fix", false, "rewrite what earlier versions of Istio called otherwise, where it is exact, and check what comes of it")
	flags.Var(choice(&o.show, showNew, showAll), "show", "new, or all: also what is accepted, what the mesh has already, and what is about objects of others")
	addOutputFlag(cmd, &o.output, checkForms()...)
	o.cluster = c.addCheckCluster(cmd)
	completeChoices(cmd, "fail-on", string(check.Error), string(check.Warning), string(check.Info))
	completeChoices(cmd, "show", showNew, showAll)
	_ = cmd.RegisterFlagCompletionFunc("ignore", completeCodes)
	_ = cmd.MarkFlagDirname("root")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("policy", "yaml", "yml")
}

// check looks at all that the command line names, and says what was found.
func (c *cli) check(cmd *cobra.Command, o *checkOptions, args []string) error {
	paths, files, err := o.inputs(cmd, args)
	if err != nil {
		return err
	}
	q, err := o.request()
	if err != nil {
		return err
	}
	if err := o.cluster.verify(cmd); err != nil {
		return err
	}
	report := &checked{house: policyNames(q.Policies), version: c.version, failOn: check.Level(o.failOn), showAll: o.show == showAll}
	defer report.close()
	for _, path := range paths {
		in, err := openFolder(path, o.root)
		report.open(in, err)
	}
	for _, file := range files {
		in, err := c.openFile(file)
		report.open(in, err)
	}
	if o.fix {
		if err := c.fix(cmd.Context(), o, report); err != nil {
			return err
		}
	}
	if len(report.inputs) > 0 {
		if err := o.ask(cmd, report, &q); err != nil {
			return err
		}
	}
	if err := report.run(cmd.Context(), q); err != nil {
		return err
	}
	if err := c.checkWriter(o.output).write(c.out, report); err != nil {
		return err
	}
	if err := report.err(); err != nil {
		return err
	}
	if report.counts().Blocking > 0 {
		return &exitError{code: exitFound}
	}
	return nil
}

// ask reads what lives, and takes what the Mooring says where the command line says nothing.
func (o *checkOptions) ask(cmd *cobra.Command, r *checked, q *check.Request) error {
	var tree fs.FS
	if first := r.inputs[0]; first.tree != nil {
		tree = first.files
	}
	name, failOn, err := o.cluster.read(cmd.Context(), tree, q)
	if err != nil {
		return err
	}
	r.cluster, r.house = name, policyNames(q.Policies)
	if failOn != "" && !cmd.Flags().Changed("fail-on") {
		r.failOn = failOn
	}
	return nil
}

// fix rewrites what can be, and says so: beside the report where that is for machines.
func (c *cli) fix(ctx context.Context, o *checkOptions, r *checked) error {
	x := &fixes{}
	var failed error
	for i, in := range r.inputs {
		failed = x.fix(ctx, in, sync.NewRenderer())
		if failed == nil && in.disk != "" {
			r.inputs[i], failed = c.openFile(in.name)
		}
		if failed != nil {
			break
		}
	}
	r.fixes = x
	if failed != nil && len(x.done) == 0 {
		return failed
	}
	w := c.out
	if o.output != outputText {
		w = c.errOut
	}
	return errors.Join(x.write(w, paletteFor(c.color, w, c.getenv), failed == nil), failed)
}

// inputs tells the folders and the files of the command line apart. What follows -f may be more files: that is what a shell makes of -f *.yaml.
func (o *checkOptions) inputs(cmd *cobra.Command, args []string) (paths, files []string, err error) {
	if len(o.files) == 0 {
		if len(args) == 0 {
			return nil, nil, usageErrorf(cmd.CommandPath(), "PATH is missing, or -f FILE")
		}
		return args, nil, nil
	}
	if o.fix && slices.Contains(o.files, "-") {
		return nil, nil, usageErrorf(cmd.CommandPath(), "--fix rewrites files, and standard input is none")
	}
	if o.root != "" {
		return nil, nil, usageErrorf(cmd.CommandPath(), "--root belongs to a PATH, and there is -f %s", o.files[0])
	}
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || info.IsDir() {
			return nil, nil, usageErrorf(cmd.CommandPath(), "PATH and -f FILE do not go together: there are %s and -f %s", arg, o.files[0])
		}
	}
	return nil, append(o.files, args...), nil
}

// request is what all the inputs are checked with.
func (o *checkOptions) request() (check.Request, error) {
	q := check.Request{}
	for _, code := range o.ignore {
		if code = strings.ToUpper(strings.TrimSpace(code)); code != "" {
			q.Ignore = append(q.Ignore, code)
		}
	}
	for _, entry := range o.suppress {
		code, resource, ok := strings.Cut(entry, "=")
		if !ok || code == "" || resource == "" {
			return q, usageErrorf("mooring check", "--suppress %q is not CODE=RESOURCE, as in IST0118=Service/shop/*", entry)
		}
		q.Suppress = append(q.Suppress, check.Suppression{Code: strings.ToUpper(code), Resource: resource})
	}
	var err error
	q.Policies, err = readPolicies(o.policies)
	return q, err
}

// run renders and checks each input on its own. What cannot be done is kept with the report, so that one broken folder does not hide what is found in the others; the
// error is one that ends it all.
func (r *checked) run(ctx context.Context, q check.Request) error {
	renderer, checker := sync.NewRenderer(), check.New()
	for _, in := range r.inputs {
		if err := in.render(ctx, renderer); err != nil {
			r.failures = append(r.failures, failure{in, err})
			continue
		}
		q.Set = in.set
		found, err := checker.Check(ctx, q)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.failures = append(r.failures, failure{in, fmt.Errorf("check %s: %w", in.name, err)})
			continue
		}
		r.add(in, found)
	}
	r.sort()
	return nil
}

// completeChecked lets the shell offer folders, and files after -f.
func completeChecked(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if cmd.Flags().Changed("filename") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}
