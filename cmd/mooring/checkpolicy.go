package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/mooring-dev/mooring/render/check/policy"
)

// readPolicies reads the policies of the house that the command line names: files, and the YAML files of folders.
func readPolicies(names []string) ([]*policy.Policy, error) {
	var all []*policy.Policy
	var errs []error
	for _, name := range names {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("read policies %s: %w", name, err)
		}
		more, err := policiesOf(os.DirFS(filepath.Dir(abs)), filepath.Base(abs), name)
		all = append(all, more...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// policiesOf reads a file or a folder of a file system; called is its name for people.
func policiesOf(files fs.FS, name, called string) ([]*policy.Policy, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, withHint(fmt.Errorf("read policies %s: %w", called, cause(err)), "name a file with documents of kind %s, or a folder of such files", policy.Kind)
	}
	if !info.IsDir() {
		return onePolicyFile(files, name, called)
	}
	entries, err := fs.ReadDir(files, name)
	if err != nil {
		return nil, fmt.Errorf("read policies %s: %w", called, cause(err))
	}
	var all []*policy.Policy
	var errs []error
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, path.Ext(e.Name())) || e.Name()[0] == '.' {
			continue
		}
		more, err := onePolicyFile(files, path.Join(name, e.Name()), path.Join(filepath.ToSlash(called), e.Name()))
		all = append(all, more...)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, withHint(fmt.Errorf("read policies %s: there is none in it", called), "a policy is a document of kind %s in a file that ends in .yaml", policy.Kind)
	}
	return all, nil
}

func onePolicyFile(files fs.FS, name, called string) ([]*policy.Policy, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", called, cause(err))
	}
	defer func() { _ = f.Close() }() // it was opened for reading only
	content, err := readLimited(f)
	if err != nil {
		return nil, fmt.Errorf("read policy %s: %w", called, cause(err))
	}
	all, err := policy.Parse(called, content)
	if err != nil {
		return nil, withHint(fmt.Errorf("read policy %w", err), "the functions are those of the API server: https://kubernetes.io/docs/reference/using-api/cel/")
	}
	return all, nil
}

// policyNames are the names of policies by their codes.
func policyNames(all []*policy.Policy) map[string]string {
	names := map[string]string{}
	for _, p := range all {
		names[p.Code] = p.Name
	}
	return names
}
