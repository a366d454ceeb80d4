package alarm

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// secrets makes receivers of the Secrets that Alarms name. They are read each time, so that a changed one counts at once.
type secrets struct {
	live   client.Reader
	shouts shouts
}

func (s *secrets) receiver(ctx context.Context, a *v1alpha1.Alarm) (receiver, error) {
	if m := a.Spec.Alertmanager; m != nil {
		var data map[string][]byte
		if m.SecretRef != nil {
			var err error
			if data, err = s.read(ctx, a.Namespace, m.SecretRef.Name); err != nil {
				return nil, err
			}
		}
		return newAlertmanager(m, data)
	}
	ref := a.Spec.Shoutrrr.SecretRef
	key := cmp.Or(ref.Key, "urls")
	data, err := s.read(ctx, a.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	invalid := func(why string) error {
		return &problem{v1alpha1.AlarmReasonInvalidSecret, fmt.Sprintf("read Secret %s/%s: %s", a.Namespace, ref.Name, why)}
	}
	var addresses []string
	for line := range strings.Lines(string(data[key])) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			addresses = append(addresses, line)
		}
	}
	if len(addresses) == 0 {
		return nil, invalid(fmt.Sprintf("there is no address under the key %s; put one a line there, such as slack://hook:…@webhook", key))
	}
	for i, address := range addresses {
		if _, err := open(address); err != nil {
			return nil, invalid(fmt.Sprintf("address %d of the key %s: %v", i+1, key, err))
		}
	}
	return &shouter{addresses: addresses, shouts: &s.shouts}, nil
}

// read a Secret of the Alarm's own namespace.
func (s *secrets) read(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &problem{v1alpha1.AlarmReasonInvalidSecret, fmt.Sprintf("read Secret %s/%s: it does not exist; make it, or name another one in the spec", namespace, name)}
	case err != nil:
		return nil, &problem{v1alpha1.AlarmReasonInvalidSecret, fmt.Sprintf("read Secret %s/%s: %v", namespace, name, err)}
	}
	return secret.Data, nil
}
