package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (c *cli) suspendCommand() *cobra.Command {
	return c.suspendOrResume(&cobra.Command{
		Use:   "suspend NAME...",
		Short: "Let go: nothing is fetched, applied or corrected until resume",
		Long: `Let go of Moorings: nothing is fetched, applied or corrected until they are resumed. What
is in the cluster stays as it is, and may be changed by hand.

The field spec.suspend is set in the cluster. When the Mooring itself is kept in Git, set it
there too, or what keeps it will set it back.

` + clusterHelp + "\n" + exitHelp,
		Example: "  mooring suspend prod -n mesh",
	}, true)
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.suspendOrResume(&cobra.Command{
		Use:   "resume NAME...",
		Short: "Take hold again after suspend",
		Long: `Take hold of suspended Moorings again: the newest commit is applied at once, unless spec.schedule
or spec.windows has it wait, and what was changed by hand is put right. "mooring diff NAME" shows beforehand what that will be.

` + clusterHelp + "\n" + exitHelp,
		Example: "  mooring resume prod -n mesh",
	}, false)
}

func (c *cli) suspendOrResume(cmd *cobra.Command, suspend bool) *cobra.Command {
	flags := c.addClusterFlags(cmd)
	cmd.GroupID = groupCluster
	cmd.Args = args(1, -1, "NAME")
	cmd.ValidArgsFunction = flags.completeNames
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		cluster, err := flags.connect()
		if err != nil {
			return err
		}
		// One that is missing is no reason to leave the others as they are.
		var errs []error
		for _, name := range names {
			said, err := cluster.setSuspend(cmd.Context(), name, suspend)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if _, err := fmt.Fprintf(c.out, "Mooring %s/%s: %s\n", cluster.namespace, name, said); err != nil {
				return err
			}
		}
		return errors.Join(errs...)
	}
	return cmd
}

// setSuspend writes spec.suspend where it differs, and says what it did.
func (c *cluster) setSuspend(ctx context.Context, name string, suspend bool) (string, error) {
	m, err := c.mooring(ctx, name)
	if err != nil {
		return "", err
	}
	if m.Spec.Suspend == suspend {
		if suspend {
			return "was suspended already", nil
		}
		return "was not suspended", nil
	}
	patch := client.MergeFrom(m.DeepCopy())
	m.Spec.Suspend = suspend
	if err := c.Patch(ctx, m, patch, fieldManager); err != nil {
		return "", fmt.Errorf("set suspend of Mooring %s/%s: %w", c.namespace, name, err)
	}
	if !suspend {
		return "resumed" + pending(m), nil
	}
	if m.Status.LastAppliedRevision == "" {
		return "suspended before anything was applied", nil
	}
	return "suspended at " + shortRevision(m.Status.LastAppliedRevision), nil
}

// pending says what the agent goes on from.
func pending(m *v1alpha1.Mooring) string {
	if m.Status.LastAppliedRevision == "" {
		return ""
	}
	return ", going on from " + shortRevision(m.Status.LastAppliedRevision)
}
