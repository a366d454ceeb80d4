package sync

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// reader reads Secrets and ConfigMaps that a Mooring names straight from the API server, never through a cache: an agent that caches Secrets holds
// every Secret of the cluster in memory, and needs the right to list them all.
type reader interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
}

// remote is the repository with its credentials and the proxy on the way.
func (p *pass) remote(ctx context.Context) (repos.Remote, error) {
	ref := p.mooring.Spec.Source.SecretRef
	if ref == nil {
		return p.viaProxy(ctx, p.address())
	}
	return p.remoteWith(ctx, ref.Name, "spec.source.secretRef")
}

// remoteWith is the repository with the credentials of a Secret, which a field names.
func (p *pass) remoteWith(ctx context.Context, secret, field string) (repos.Remote, error) {
	remote := p.address()
	data, err := p.secret(ctx, secret, field)
	if err != nil {
		return remote, err
	}
	if remote.Auth, err = repos.AuthFromSecret(data); err != nil {
		return remote, fmt.Errorf("read Secret %s/%s: %w", p.mooring.Namespace, secret, err)
	}
	return p.viaProxy(ctx, remote)
}

// address is the repository, and what is read of it, without the way there.
func (p *pass) address() repos.Remote {
	return repos.Remote{URL: p.mooring.Spec.Source.URL, RecurseSubmodules: p.mooring.Spec.Source.RecurseSubmodules}
}

// viaProxy adds the proxy, where the Mooring names one.
func (p *pass) viaProxy(ctx context.Context, remote repos.Remote) (repos.Remote, error) {
	ref := p.mooring.Spec.Source.ProxySecretRef
	if ref == nil {
		return remote, nil
	}
	data, err := p.secret(ctx, ref.Name, "spec.source.proxySecretRef")
	if err != nil {
		return remote, err
	}
	if remote.Proxy, err = repos.ProxyFromSecret(data); err != nil {
		return remote, fmt.Errorf("read Secret %s/%s: %w", p.mooring.Namespace, ref.Name, err)
	}
	return remote, nil
}

// secret of the Mooring's namespace. It is read at every pass, so that a changed one is taken up without a restart; it is one GET.
func (p *pass) secret(ctx context.Context, name, field string) (map[string][]byte, error) {
	key := types.NamespacedName{Namespace: p.mooring.Namespace, Name: name}
	var secret corev1.Secret
	err := p.reader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, &mendable{
			error: fmt.Errorf("read Secret %s: it does not exist", key),
			mend:  fmt.Sprintf("make it (kubectl -n %s create secret generic %s --from-file=…), or name another one in %s", key.Namespace, name, field),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret.Data, nil
}

// mendable is an error with the next step for a person.
type mendable struct {
	error
	mend string
}

// Mend is the next step.
func (e *mendable) Mend() string { return e.mend }

// Unwrap gives the cause.
func (e *mendable) Unwrap() error { return e.error }

func ref(m *v1alpha1.Mooring) repos.Ref {
	r := m.Spec.Source.Ref
	return repos.Ref{Branch: r.Branch, Tag: r.Tag, SemVer: r.Semver, Commit: r.Commit, Name: r.Name}
}
