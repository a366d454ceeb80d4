package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// takeSpec adds to a request what the Mooring's spec.check says. Policies of its repository are those of the work tree, which is nil where single files are checked: then
// the error says that they cannot be found.
func (c *cluster) takeSpec(ctx context.Context, m *v1alpha1.Mooring, tree fs.FS, q *check.Request) error {
	spec := m.Spec.Check
	if spec == nil {
		return nil
	}
	for _, code := range spec.Ignore {
		q.Ignore = append(q.Ignore, string(code))
	}
	for _, s := range spec.Suppress {
		q.Suppress = append(q.Suppress, check.Suppression{Code: s.Code, Resource: s.Resource})
	}
	for _, source := range spec.Policies {
		var found []*policy.Policy
		var err error
		switch {
		case source.ConfigMapRef != nil:
			found, err = c.policiesIn(ctx, m.Namespace, *source.ConfigMapRef)
		case tree == nil:
			err = withHint(fmt.Errorf("read policies %s of Mooring %s/%s: they are in its repository", source.Path, m.Namespace, m.Name),
				"check the folder of a work tree, mooring check PATH --mooring %s, or name them with --policy", m.Name)
		default:
			found, err = policiesOf(tree, source.Path, source.Path)
		}
		if err != nil {
			return err
		}
		q.Policies = append(q.Policies, found...)
	}
	return nil
}

// policiesIn reads the policies of a ConfigMap, of one key or of all.
func (c *cluster) policiesIn(ctx context.Context, namespace string, ref v1alpha1.ConfigMapReference) ([]*policy.Policy, error) {
	core, err := corev1.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("read policies of ConfigMap %s/%s: %w", namespace, ref.Name, err)
	}
	found, err := core.ConfigMaps(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read policies of ConfigMap %s/%s: %w", namespace, ref.Name, err)
	}
	var all []*policy.Policy
	for _, key := range slices.Sorted(maps.Keys(found.Data)) {
		if ref.Key != "" && ref.Key != key {
			continue
		}
		more, err := policy.Parse(fmt.Sprintf("ConfigMap/%s/%s[%s]", namespace, ref.Name, key), []byte(found.Data[key]))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}
