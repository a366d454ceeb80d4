package sync

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render/check/policy"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// document is a text with rules of the house, and where it was found.
type document struct {
	From string
	Text []byte
}

// house is what a check of a Mooring goes by, beside the rules that everybody has.
type house struct {
	// key stands for all of it: spec.check, what the ConfigMaps hold, and the labels that policies see. Files are the commit's, and so is their content.
	key       string
	documents []document
}

// house reads the ConfigMaps that spec.check names. They are read at each pass, so that a changed rule is taken up without a commit: one GET
// for each, and none where there are none.
func (p *pass) house(ctx context.Context) (house, error) {
	spec := p.mooring.Spec.Check
	if spec == nil {
		return house{}, nil
	}
	var h house
	for _, source := range spec.Policies {
		if source.ConfigMapRef == nil {
			continue
		}
		found, err := p.configMap(ctx, *source.ConfigMapRef)
		if err != nil {
			return house{}, err
		}
		h.documents = append(h.documents, found...)
	}
	var labels map[string]string
	if len(spec.Policies) > 0 {
		labels = p.mooring.Labels // which policies see
	}
	text, err := json.Marshal(struct {
		Spec      *v1alpha1.Check
		Documents []document
		Labels    map[string]string
	}{spec, h.documents, labels})
	if err != nil {
		return house{}, fmt.Errorf("read spec.check: %w", err)
	}
	sum := sha256.Sum256(text)
	h.key = hex.EncodeToString(sum[:])
	return h, nil
}

// configMap reads the keys of a ConfigMap that hold policies.
func (p *pass) configMap(ctx context.Context, ref v1alpha1.ConfigMapReference) ([]document, error) {
	name := types.NamespacedName{Namespace: p.mooring.Namespace, Name: ref.Name}
	var found corev1.ConfigMap
	err := p.reader.Get(ctx, name, &found)
	if apierrors.IsNotFound(err) {
		return nil, &mendable{
			error: fmt.Errorf("read policies of ConfigMap %s: it does not exist", name),
			mend:  fmt.Sprintf("make it (kubectl -n %s create configmap %s --from-file=…), or name another one in spec.check.policies", name.Namespace, name.Name),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read policies of ConfigMap %s: %w", name, err)
	}
	var documents []document
	for _, key := range slices.Sorted(maps.Keys(found.Data)) {
		if ref.Key == "" || ref.Key == key {
			documents = append(documents, document{From: fmt.Sprintf("ConfigMap/%s/%s[%s]", name.Namespace, name.Name, key), Text: []byte(found.Data[key])})
		}
	}
	if len(documents) == 0 {
		return nil, &mendable{
			error: fmt.Errorf("read policies of ConfigMap %s: it has no key %s", name, cmp.Or(ref.Key, "at all")),
			mend:  "its keys are " + cmp.Or(strings.Join(slices.Sorted(maps.Keys(found.Data)), ", "), "none"),
		}
	}
	return documents, nil
}

// ruleError says that there are no rules of the house to go by where the Mooring says so. Another commit, spec or ConfigMap mends it, no other try.
type ruleError struct{ error }

// Unwrap gives the cause.
func (e *ruleError) Unwrap() error { return e.error }

// documents are all rules of the house: those of the commit, then those of ConfigMaps.
func (p *pass) documents(ctx context.Context, remote repos.Remote, t *target, h house) ([]document, error) {
	var paths []string
	if spec := p.mooring.Spec.Check; spec != nil {
		for _, source := range spec.Policies {
			if source.Path != "" {
				paths = append(paths, path.Clean(source.Path))
			}
		}
	}
	if len(paths) == 0 {
		return h.documents, nil
	}
	snapshot, err := p.snapshot(ctx, remote, t.rev, paths...)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	var all []document
	for _, name := range paths {
		err := p.read(ctx, report.StageCheck, snapshot, func(files fs.FS) error {
			found, err := policyFiles(files, name)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return append(all, h.documents...), nil
}

// policies compiles documents. The error joins all that do not compile, each with its file or ConfigMap and its place there.
func policies(documents []document) ([]*policy.Policy, error) {
	var all []*policy.Policy
	var errs []error
	for _, d := range documents {
		found, err := policy.Parse(d.From, d.Text)
		if err != nil {
			errs = append(errs, err)
		}
		all = append(all, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &ruleError{err}
	}
	return all, nil
}

// forPolicies is what policies see of the Mooring.
func forPolicies(m *v1alpha1.Mooring, rev repos.Revision) map[string]any {
	anyOf := func(texts map[string]string) map[string]any {
		all := map[string]any{}
		for k, v := range texts {
			all[k] = v
		}
		return all
	}
	return map[string]any{
		"name": m.Name, "namespace": m.Namespace, "labels": anyOf(m.Labels), "annotations": anyOf(m.Annotations),
		"path": m.Spec.Path, "url": m.Spec.Source.URL, "branch": m.Spec.Source.Ref.Branch, "revision": string(rev.Commit),
	}
}

// policyFiles reads the policies that a commit holds, in a file or in the *.yaml and *.yml files of a folder.
func policyFiles(fsys fs.FS, name string) ([]document, error) {
	info, err := fs.Stat(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ruleError{fmt.Errorf("read policies of %s: the commit has no such file or folder", name)}
	}
	if err != nil {
		return nil, fmt.Errorf("read policies of %s: %w", name, err)
	}
	names := []string{name}
	if info.IsDir() {
		if names, err = yamlFiles(fsys, name); err != nil {
			return nil, err
		}
	}
	var documents []document
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read policies of %s: %w", name, err)
		}
		documents = append(documents, document{From: name, Text: text})
	}
	return documents, nil
}

func yamlFiles(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("read policies of %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			names = append(names, path.Join(dir, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, &ruleError{fmt.Errorf("read policies of %s: the folder has no *.yaml file", dir)}
	}
	return names, nil
}
