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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) getAlarmsCommand() *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:     "alarms",
		Aliases: []string{"alarm"},
		Short:   "Show whom the agent tells what happens to Moorings, and how that went",
		Long: `Show the Alarms of a namespace: where they send to, how many faults they told that are not over,
how many messages they sent, when the last one was, and what is wrong where one is not Ready.

` + clusterHelp + "\n" + exitHelp,
		Example: `  mooring get alarms -A
  mooring get alarms -n mesh -o json`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.getAlarms(cmd, o) },
	}
	o.cluster = c.addClusterFlags(cmd)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the Alarms of all namespaces")
	addOutputFlag(cmd, &o.output, outputTable, outputYAML, outputJSON)
	return cmd
}

func (c *cli) getAlarms(cmd *cobra.Command, o *getOptions) error {
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	namespace, where := cluster.namespace, "namespace "+cluster.namespace
	if o.all {
		namespace, where = metav1.NamespaceAll, "the cluster"
	}
	list := &v1alpha1.AlarmList{}
	switch err := cluster.List(cmd.Context(), list, client.InNamespace(namespace)); {
	case isNoCRD(err):
		return withHint(fmt.Errorf("the cluster has no kind Alarm"), "install Mooring with kubectl apply -k deploy, or choose another cluster with --context")
	case err != nil:
		return fmt.Errorf("list the Alarms of %s: %w", where, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Alarm) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	var items []runtime.Object
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AlarmKind))
		list.Items[i].ManagedFields = nil
		items = append(items, &list.Items[i])
	}
	switch {
	case o.output == outputYAML:
		return writeYAML(c.out, listOf(items))
	case o.output == outputJSON:
		return writeJSON(c.out, listOf(items))
	case len(items) == 0:
		_, err := fmt.Fprintf(c.errOut, "There is no Alarm in %s.\n", where)
		return err
	}
	t := alarmTable(list.Items, paletteFor(c.color, c.out, c.getenv), time.Now(), o.all)
	t.width = widthOf(c.out)
	return t.write(c.out)
}

func alarmTable(found []v1alpha1.Alarm, color palette, now time.Time, namespaces bool) *table {
	t := &table{head: []string{"NAME", "READY", "REASON", "TO", "OPEN", "SENT", "LAST", "MESSAGE"}}
	if namespaces {
		t.head = slices.Insert(t.head, 0, "NAMESPACE")
	}
	for _, a := range found {
		ready := metav1.Condition{Status: metav1.ConditionUnknown, Message: "no agent has looked at it yet"}
		if is := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady); is != nil {
			ready = *is
		}
		row := []cell{
			plain(a.Name),
			{text: string(ready.Status), paint: color.ofStatus(ready.Status)},
			plain(orDash(ready.Reason)), plain(receiverOf(&a)),
			plain(strconv.Itoa(int(a.Status.OpenCount))), plain(strconv.FormatInt(a.Status.Sent, 10)), plain(since(a.Status.LastSent, now)), plain(oneLine(ready.Message)),
		}
		if namespaces {
			row = slices.Insert(row, 0, plain(a.Namespace))
		}
		t.add(row...)
	}
	return t
}

// receiverOf an Alarm: the address of an Alertmanager, or the Secret that has addresses.
func receiverOf(a *v1alpha1.Alarm) string {
	if m := a.Spec.Alertmanager; m != nil {
		return m.URL
	}
	return "Secret/" + a.Spec.Shoutrrr.SecretRef.Name
}
