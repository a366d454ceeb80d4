package main

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// checkCluster are the flags by which a check asks a cluster.
type checkCluster struct {
	*clusterFlags
	asked   bool
	mooring string
	// flags are the names of those that say which cluster.
	flags map[string]bool
}

// addCheckCluster gives a command the flag --cluster, and those that mean something only with it.
func (c *cli) addCheckCluster(cmd *cobra.Command) *checkCluster {
	o := &checkCluster{flags: map[string]bool{}}
	// kubectl has a flag of this name too, for an entry of the kubeconfig that hardly anybody names by itself. Here it is ours: what is there already is not added again.
	cmd.Flags().BoolVar(&o.asked, "cluster", false, "lay the objects over what lives in the cluster: what is there is found, and what it has already does not block")
	cmd.Flags().StringVar(&o.mooring, "mooring", "", "check as for this `NAME`d Mooring of the cluster: its objects that are not among the files are taken to be pruned, and its spec.check holds; implies --cluster")
	own := map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { own[f.Name] = true })
	o.clusterFlags = c.addClusterFlags(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { o.flags[f.Name] = !own[f.Name] })
	cmd.Flags().Lookup("namespace").Usage = "the namespace of the Mooring; default is the one of the kubeconfig's context"
	_ = cmd.RegisterFlagCompletionFunc("mooring", o.completeOneName)
	return o
}

// verify refuses flags that would change nothing: whoever names a cluster means it to be asked.
func (o *checkCluster) verify(cmd *cobra.Command) error {
	if o.asked || o.mooring != "" {
		if o.mooring == "" && cmd.Flags().Changed("namespace") {
			return usageErrorf(cmd.CommandPath(), "--namespace is the one of a Mooring, and there is no --mooring NAME")
		}
		return nil
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if o.flags[f.Name] && err == nil {
			err = usageErrorf(cmd.CommandPath(), "--%s says which cluster, and none is asked without --cluster", f.Name)
		}
	})
	return err
}

// read adds to a request what lives, and what the Mooring says about its checks. The name of the cluster is for the report; it is empty when none is asked. failOn is
// what the Mooring says of it, and empty where it says nothing.
func (o *checkCluster) read(ctx context.Context, tree fs.FS, q *check.Request) (name string, failOn check.Level, err error) {
	if !o.asked && o.mooring == "" {
		return "", "", nil
	}
	cfg, err := o.config()
	if err != nil {
		return "", "", err
	}
	unit := ""
	if o.mooring != "" {
		cluster, err := o.connect()
		if err != nil {
			return "", "", err
		}
		m, err := cluster.mooring(ctx, o.mooring)
		if err != nil {
			return "", "", err
		}
		if err := cluster.takeSpec(ctx, m, tree, q); err != nil {
			return "", "", err
		}
		if m.Spec.Check != nil {
			failOn = check.Level(m.Spec.Check.FailOn)
		}
		if m.Spec.Prune.Enabled == nil || *m.Spec.Prune.Enabled {
			unit = sync.ID(m)
		}
		q.Mooring = mooringForPolicies(m)
	}
	q.Cluster, err = sync.ReadCluster(ctx, cfg, unit)
	if err != nil {
		return "", "", fmt.Errorf("read what lives in the cluster: %w", err)
	}
	return cfg.Host, failOn, nil
}

// mooringForPolicies is what the policies of the house see of a Mooring. There is no revision: what is checked may not be committed.
func mooringForPolicies(m *v1alpha1.Mooring) map[string]any {
	anyOf := func(texts map[string]string) map[string]any {
		all := map[string]any{}
		for k, v := range texts {
			all[k] = v
		}
		return all
	}
	return map[string]any{
		"name": m.Name, "namespace": m.Namespace, "labels": anyOf(m.Labels), "annotations": anyOf(m.Annotations),
		"path": m.Spec.Path, "url": m.Spec.Source.URL, "branch": m.Spec.Source.Ref.Branch,
	}
}
