package kube

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Build gives the path of the control plane's binary, and builds it first when the cache does not hold it, which takes about ten minutes
// on two cores: see [Recipe.Build].
func Build(ctx context.Context, progress io.Writer) (string, error) {
	src, err := NestedModule("kube", "server")
	if err != nil {
		return "", err
	}
	version, err := kubernetesVersion(src)
	if err != nil {
		return "", err
	}
	flags, err := versionFlags(version)
	if err != nil {
		return "", err
	}
	return Recipe{
		Name: "control plane", What: "etcd, kube-apiserver, kube-controller-manager and kubectl " + version,
		Source: src, Package: ".", Flags: flags,
	}.Build(ctx, progress)
}

// versionFlags of the build. Without the version kube-apiserver calls itself v0.0.0-master+$Format:%H$, which kubectl
// and Helm cannot parse.
func versionFlags(version string) ([]string, error) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("read the version of k8s.io/kubernetes: %q is not major.minor.patch", version)
	}
	ldflags := []string{"-s", "-w"}
	for _, set := range []string{
		"gitVersion=" + version, "gitMajor=" + parts[0], "gitMinor=" + parts[1],
		"gitCommit=" + version, "gitTreeState=clean", "buildDate=1970-01-01T00:00:00Z",
	} {
		ldflags = append(ldflags, "-X", "k8s.io/component-base/version."+set)
	}
	return []string{"-buildvcs=false", "-ldflags=" + strings.Join(ldflags, " ")}, nil
}

// kubernetesVersion is what the nested module requires, such as v1.37.2.
func kubernetesVersion(src string) (string, error) {
	mod, err := os.ReadFile(filepath.Join(src, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read the control plane's module: %w", err)
	}
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`).FindSubmatch(mod)
	if found == nil {
		return "", fmt.Errorf("read %s: it requires no k8s.io/kubernetes", filepath.Join(src, "go.mod"))
	}
	return string(found[1]), nil
}
