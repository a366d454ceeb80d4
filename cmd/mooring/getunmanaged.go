package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/render/check/unmanaged"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) getUnmanagedCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:   "unmanaged [NAME...]",
		Short: "Show what no Mooring owns and bears on what one does",
		Long: `Show the objects of Istio's kinds that no Mooring owns and that bear on hosts or workloads of the
Moorings: a forgotten EnvoyFilter, a second VirtualService for a host. Each comes with what it
bears on, why, and who wrote to it. The cluster is read now, with your own rights.

What Istio's installation brings, what a controller made for an object of its own, and what says
mooring.dev/reconcile: disabled is left out.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get unmanaged -A
  mooring get unmanaged prod -n mesh
  mooring get unmanaged -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			found, err := c.find(cmd, o, names)
			if err != nil || len(found) == 0 && o.output == outputTable {
				return err
			}
			return c.unmanaged(cmd.Context(), o, found)
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Moorings of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputYAML, outputJSON)
	return cmd
}

// jsonUnmanaged is one finding as JSON. Its names are a promise to the scripts that read it.
type jsonUnmanaged struct {
	Mooring   string       `json:"mooring"`
	Object    jsonID       `json:"object"`
	Hosts     []string     `json:"hosts,omitempty"`
	Workloads []string     `json:"workloads,omitempty"`
	Why       string       `json:"why"`
	Managers  []jsonWriter `json:"managers,omitempty"`
	Created   time.Time    `json:"created"`
}

type jsonWriter struct {
	Manager   string    `json:"manager"`
	Operation string    `json:"operation"`
	Time      time.Time `json:"time"`
}

func (c *cli) unmanaged(ctx context.Context, o *getOptions, of []v1alpha1.Mooring) error {
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	owners, err := cluster.owners(ctx, of)
	if err != nil {
		return err
	}
	living, err := sync.ReadCluster(ctx, cluster.config, "")
	if err != nil {
		return fmt.Errorf("read what lives in the cluster: %w", err)
	}
	for _, gk := range unmanaged.Unread(living) {
		_, _ = fmt.Fprintf(c.errOut, "not looked at: %s: %s\n", gk, living.Unread[gk])
	}
	n, owned := unmanaged.Read(living, owners), unmanaged.Owned(living)
	now := time.Now()
	t := &table{head: []string{"MOORING", "OBJECT", "BEARS ON", "MADE BY", "AGE", "WHY"}}
	entries := []jsonUnmanaged{}
	for i := range of {
		m := &of[i]
		name := m.Name
		if o.all {
			name = m.Namespace + "/" + m.Name
		}
		for _, f := range n.Find(owned[sync.ID(m)]) {
			entries = append(entries, unmanagedForJSON(m, f))
			t.add(plain(name), plain(f.Object.String()), plain(report.BearsOn(f)), plain(orDash(strings.Join(managersOf(f), ", "))),
				plain(duration.HumanDuration(now.Sub(f.Created))), plain(f.Why))
		}
	}
	switch {
	case o.output == outputJSON:
		return writeJSON(c.out, entries)
	case o.output == outputYAML:
		return writeYAML(c.out, entries)
	case len(entries) == 0:
		_, err := fmt.Fprintln(c.errOut, "Nothing that no Mooring owns bears on what these have.")
		return err
	}
	return t.write(c.out)
}

// owners are all Moorings, or those that are known where the user may not see the others.
func (c *cluster) owners(ctx context.Context, known []v1alpha1.Mooring) (unmanaged.Owners, error) {
	all, err := c.moorings(ctx, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		return sync.Owners(known, false), nil
	}
	return sync.Owners(all, true), err
}

// managersOf an object that nobody manages, each once.
func managersOf(f unmanaged.Finding) []string {
	var names []string
	for _, w := range f.Writers {
		if !slices.Contains(names, w.Manager) {
			names = append(names, w.Manager)
		}
	}
	return names
}

func unmanagedForJSON(m *v1alpha1.Mooring, f unmanaged.Finding) jsonUnmanaged {
	j := jsonUnmanaged{
		Mooring: m.Namespace + "/" + m.Name, Object: jsonID(f.Object), Hosts: f.Hosts, Workloads: f.Workloads, Why: f.Why, Created: f.Created,
	}
	for _, w := range f.Writers {
		j.Managers = append(j.Managers, jsonWriter(w))
	}
	return j
}
