package sync

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render/check/world"
)

// ReadCluster reads what lives in the cluster that cfg leads to, with its rights, as the check of a commit needs it. unit is the ApplySet id of the
// Mooring whose objects go when the commit drops them ([ID]); empty when nothing is pruned. What may not be read is
// said in the cluster's Unread; an error means that nothing could be read.
func ReadCluster(ctx context.Context, cfg *rest.Config, unit string) (*world.Cluster, error) {
	applier, err := apply.New(cfg, apply.Options{})
	if err != nil {
		return nil, err
	}
	s, err := applier.Surroundings(ctx)
	if err != nil {
		return nil, err
	}
	return clusterOf(s, unit), nil
}

func clusterOf(s *apply.Surroundings, unit string) *world.Cluster {
	return &world.Cluster{Objects: s.Objects, MetadataOnly: s.MetadataOnly, Unread: s.Unread, Unit: unit}
}
