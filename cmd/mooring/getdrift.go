package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) getDriftCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:   "drift [NAME...]",
		Short: "Show what somebody changed in the cluster, and who",
		Long: `Show each field that differs from the applied revision, as the agent saw it last: what Git wants,
what lives, who wrote it, and since when. There is some where spec.drift.mode is Alarm, where
somebody undoes each correction, and where a correction failed. What is removed or deleted leaves
no name behind: WHO is unknown then, and the API server's audit log is where to look.

What was put right at once is not drift any more: "mooring get NAME" lists the last corrections.
"mooring diff NAME" looks at the cluster now, and shows every field.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get drift -A
  mooring get drift prod -n mesh
  mooring get drift -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			found, err := c.find(cmd, o, names)
			if err != nil {
				return err
			}
			return c.printDrift(o, found, len(names) == 1)
		},
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.ValidArgsFunction = o.cluster.completeNames
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Moorings of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputJSON)
	return cmd
}

// jsonDrift is one field as JSON. Its names are a promise to the scripts that read it.
type jsonDrift struct {
	Mooring string             `json:"mooring"`
	Mode    v1alpha1.DriftMode `json:"mode"`
	v1alpha1.DriftEntry
}

func (c *cli) printDrift(o *getOptions, found []v1alpha1.Mooring, one bool) error {
	now := time.Now()
	t := &table{head: []string{"MOORING", "OBJECT", "FIELD", "WANT", "LIVE", "WHO", "SINCE", "MODE"}}
	entries := []jsonDrift{}
	for _, m := range found {
		name := m.Name
		if o.all {
			name = m.Namespace + "/" + m.Name
		}
		for _, e := range m.Status.Drift {
			entries = append(entries, jsonDrift{m.Namespace + "/" + m.Name, modeOf(&m), e})
			t.add(plain(name), plain(e.Object), plain(orDash(e.Field)), plain(orDash(e.Want)), plain(orDash(e.Live)),
				plain(whoOf(e.Manager, e.Operation, e.ChangedAt, now)), plain(since(e.Since, now)), plain(modeText(modeOf(&m), e.Reason)))
		}
	}
	if o.output == outputJSON {
		return writeJSON(c.out, entries)
	}
	for _, m := range found {
		if more := int(m.Status.DriftCount) - len(m.Status.Drift); more > 0 {
			_, _ = fmt.Fprintf(c.errOut, "%d more fields of Mooring %s/%s differ: mooring diff %s -n %s shows all.\n", more, m.Namespace, m.Name, m.Name, m.Namespace)
		}
	}
	switch {
	case len(found) == 0:
		return nil
	case len(entries) == 0:
		return c.noDrift(found, one, now)
	}
	if slices.ContainsFunc(entries, func(e jsonDrift) bool { return e.Manager == "" }) {
		_, _ = fmt.Fprintln(c.errOut, unknown+": what is removed or deleted leaves no name behind. The API server's audit log has it, where one is kept.")
	}
	return t.write(c.out)
}

// noDrift says so, and what was put right last where it is one Mooring.
func (c *cli) noDrift(found []v1alpha1.Mooring, one bool, now time.Time) error {
	_, err := fmt.Fprintln(c.errOut, "Nothing differs from what is applied.")
	if err == nil && one && len(found[0].Status.Corrections) > 0 {
		last := found[0].Status.Corrections[0]
		_, err = fmt.Fprintf(c.errOut, "Put back %s ago: %s. mooring get %s shows more.\n",
			duration.HumanDuration(now.Sub(last.CorrectedAt.Time)), correctionText(last, now), found[0].Name)
	}
	return err
}

func correctionText(e v1alpha1.CorrectionEntry, now time.Time) string {
	s := e.Object
	if e.Field != "" {
		s = e.Field + " of " + e.Object
	}
	if e.Manager != "" {
		s += ", which " + whoOf(e.Manager, e.Operation, e.ChangedAt, now) + " had written"
	}
	return s
}

// unknown is who removed or deleted something: managedFields name those who wrote what is there.
const unknown = "unknown"

// whoOf writes a field manager as "kubectl-edit (Update, 5m ago)". Of a write to the scale subresource Kubernetes notes no time.
func whoOf(manager, operation string, at *metav1.Time, now time.Time) string {
	if manager == "" {
		return unknown
	}
	if at == nil && operation == "" {
		return manager
	}
	if at == nil {
		return fmt.Sprintf("%s (%s)", manager, operation)
	}
	return fmt.Sprintf("%s (%s, %s ago)", manager, cmp.Or(operation, "Update"), duration.HumanDuration(now.Sub(at.Time)))
}

func since(t *metav1.Time, now time.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func modeOf(m *v1alpha1.Mooring) v1alpha1.DriftMode {
	if m.Spec.Drift == nil || m.Spec.Drift.Mode == "" {
		return v1alpha1.DriftCorrect
	}
	return m.Spec.Drift.Mode
}

// modeText is the mode, and why it is not put right where the mode does not say it.
func modeText(mode v1alpha1.DriftMode, reason string) string {
	if reason == "" || reason == string(mode) {
		return string(mode)
	}
	return string(mode) + " (" + reason + ")"
}
