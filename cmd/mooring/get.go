package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

type getOptions struct {
	cluster *clusterFlags
	output  string
	all     bool
}

func (c *cli) getCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "get [NAME...]",
		Aliases: []string{"describe"},
		GroupID: groupCluster,
		Short:   "Show Moorings and what became of them",
		Long: `Show the Moorings of a namespace, or all there is to know about one: its conditions, the
findings about the newest commit, fields that drifted or were put back, what nobody manages and
bears on it, and what was applied when.

"mooring get moorings" is the same as "mooring get".

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get -A
  mooring get prod -n mesh
  mooring get -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Who knows kubectl writes the kind first.
			if len(args) > 0 && slices.Contains([]string{"mooring", "moorings", "moor"}, args[0]) {
				args = args[1:]
			}
			return c.get(cmd, o, args)
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Moorings of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputWide, outputYAML, outputJSON)
	cmd.AddCommand(c.getDriftCommand(), c.getAlarmsCommand(), c.getUnmanagedCommand(), c.getWindowsCommand(), c.getPromotionsCommand())
	return cmd
}

// find reads the Moorings that are named, or all of the namespace or the cluster. That there is none is said, and no error.
func (c *cli) find(cmd *cobra.Command, o *getOptions, names []string) ([]v1alpha1.Mooring, error) {
	if o.all && len(names) > 0 {
		return nil, usageErrorf(cmd.CommandPath(), "a name and --all-namespaces do not go together")
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return nil, err
	}
	var found []v1alpha1.Mooring
	for _, name := range names {
		m, err := cluster.mooring(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		found = append(found, *m)
	}
	if len(names) > 0 {
		return found, nil
	}
	namespace, where := cluster.namespace, "namespace "+cluster.namespace
	if o.all {
		namespace, where = metav1.NamespaceAll, "the cluster"
	}
	found, err = cluster.moorings(cmd.Context(), namespace)
	if err == nil && len(found) == 0 && (o.output == outputTable || o.output == outputWide) {
		_, err = fmt.Fprintf(c.errOut, "There is no Mooring in %s.\n", where)
	}
	return found, err
}

func (c *cli) get(cmd *cobra.Command, o *getOptions, names []string) error {
	found, err := c.find(cmd, o, names)
	if err != nil {
		return err
	}
	color := paletteFor(c.color, c.out, c.getenv)
	switch {
	case o.output == outputYAML:
		return writeYAML(c.out, printable(found, len(names) == 1))
	case o.output == outputJSON:
		return writeJSON(c.out, printable(found, len(names) == 1))
	case len(names) == 1 && !cmd.Flags().Changed("output"):
		return describe(c.out, color, &found[0], time.Now())
	case len(found) == 0:
		return nil
	}
	t := mooringTable(found, color, time.Now(), o.all, o.output == outputWide)
	if o.output == outputTable {
		t.width = widthOf(c.out)
	}
	return t.write(c.out)
}

// printable is a Mooring, or a List of them, without the bookkeeping of field managers that nobody reads.
func printable(found []v1alpha1.Mooring, one bool) any {
	items := make([]runtime.Object, len(found))
	for i := range found {
		found[i].ManagedFields = nil
		items[i] = &found[i]
	}
	if one {
		return items[0]
	}
	return listOf(items)
}

func mooringTable(found []v1alpha1.Mooring, color palette, now time.Time, namespaces, wide bool) *table {
	t := &table{head: []string{"NAME", "READY", "REASON", "APPLIED", "OBJECTS", "AGE", "MESSAGE"}}
	if wide {
		t.head = slices.Insert(t.head, 6, "ATTEMPTED", "SOURCE")
	}
	if namespaces {
		t.head = slices.Insert(t.head, 0, "NAMESPACE")
	}
	for _, m := range found {
		ready := readyOf(&m)
		objects := "-"
		if m.Status.Inventory != nil {
			objects = strconv.Itoa(int(m.Status.Inventory.Objects))
		}
		message := oneLine(ready.Message)
		row := []cell{
			plain(m.Name),
			{text: string(ready.Status), paint: color.ofStatus(ready.Status)},
			plain(orDash(ready.Reason)), plain(orDash(shortRevision(m.Status.LastAppliedRevision))), plain(objects),
			plain(duration.HumanDuration(now.Sub(m.CreationTimestamp.Time))), plain(message),
		}
		if wide {
			row = slices.Insert(row, 6, plain(orDash(shortRevision(m.Status.LastAttemptedRevision))), plain(sourceOf(&m)))
		}
		if namespaces {
			row = slices.Insert(row, 0, plain(m.Namespace))
		}
		t.add(row...)
	}
	return t
}

// readyOf gives the Ready condition, as it stands or as it will: an agent that has not come by yet left none, and a
// Mooring that was just suspended still has its old one.
func readyOf(m *v1alpha1.Mooring) metav1.Condition {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown,
			Message: "no agent has looked at it yet",
		}
	}
	return *ready
}

// ofStatus is the colour of a condition for which True is good.
func (p palette) ofStatus(s metav1.ConditionStatus) func(string) string {
	switch s {
	case metav1.ConditionTrue:
		return p.green
	case metav1.ConditionFalse:
		return p.red
	}
	return p.yellow
}

// shortRevision writes env/prod@sha1:4f0c12ab… as env/prod@4f0c12a.
func shortRevision(revision string) string {
	ref, id, ok := strings.Cut(revision, "@")
	if !ok {
		return revision
	}
	if _, hash, ok := strings.Cut(id, ":"); ok {
		id = hash
	}
	return ref + "@" + id[:min(len(id), 7)]
}

// sourceOf writes where a Mooring gets its configuration: url, ref and path.
func sourceOf(m *v1alpha1.Mooring) string {
	s := m.Spec.Source
	return fmt.Sprintf("%s %s %s", s.URL, refOf(s.Ref), m.Spec.Path)
}

func refOf(r v1alpha1.Ref) string {
	switch {
	case r.Branch != "":
		return "branch " + r.Branch
	case r.Tag != "":
		return "tag " + r.Tag
	case r.Semver != "":
		return "semver " + r.Semver
	case r.Commit != "":
		return "commit " + r.Commit
	}
	return r.Name
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
