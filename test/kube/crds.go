package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"istio.io/istio/manifests"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/test/poll"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRDs applies Istio's CRDs, out of its module, and Mooring's, out of deploy/crds, and answers when discovery names all of
// them. Doing so again changes nothing.
func InstallCRDs(ctx context.Context, config *rest.Config) error {
	wanted, err := readCRDs()
	if err != nil {
		return err
	}
	return install(ctx, config, wanted)
}

// InstallCRDFiles does the same with the CRDs of other files.
func InstallCRDFiles(ctx context.Context, config *rest.Config, files ...string) error {
	wanted, err := readFiles(files)
	if err != nil {
		return err
	}
	return install(ctx, config, wanted)
}

func install(ctx context.Context, config *rest.Config, wanted []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	group, applying := errgroup.WithContext(ctx)
	for _, crd := range wanted {
		group.Go(func() error {
			_, err := client.Resource(crds).Apply(applying, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "control-plane", Force: true})
			if err != nil {
				return fmt.Errorf("apply %s: %w", crd.GetName(), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return waitServed(ctx, config, wanted)
}

func readCRDs() ([]*unstructured.Unstructured, error) {
	istio, err := manifests.FS.ReadFile("charts/base/files/crd-all.gen.yaml")
	if err != nil {
		return nil, fmt.Errorf("read Istio's CRDs: %w", err)
	}
	all, err := parse("crd-all.gen.yaml", istio)
	if err != nil {
		return nil, err
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy", "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	ours, err := readFiles(files)
	return append(all, ours...), err
}

func readFiles(files []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := parse(file, content)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// parse gives the CRDs of a YAML stream, and leaves out what is none: a kustomization lies beside them.
func parse(name string, stream []byte) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			found = append(found, object)
		}
	}
}

// waitServed polls until discovery names the resource of each CRD. Established alone is too early: a client that asks
// for the kinds in the instant after it may not find them yet.
func waitServed(ctx context.Context, config *rest.Config, wanted []*unstructured.Unstructured) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return poll.Until(ctx, "all kinds are served", func() error {
		missing, err := unserved(client, wanted)
		if err == nil && missing != "" {
			err = fmt.Errorf("%s is not", missing)
		}
		return err
	})
}

// unserved is the name of a CRD that discovery does not know yet, or empty.
func unserved(client *discovery.DiscoveryClient, wanted []*unstructured.Unstructured) (string, error) {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return "", fmt.Errorf("ask for the kinds: %w", err)
	}
	served := make(map[schema.GroupResource]bool)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, resource := range list.APIResources {
			served[schema.GroupResource{Group: version.Group, Resource: resource.Name}] = true
		}
	}
	for _, crd := range wanted {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		if !served[schema.GroupResource{Group: group, Resource: plural}] {
			return crd.GetName(), nil
		}
	}
	return "", nil
}
