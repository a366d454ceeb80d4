package world

import (
	"fmt"
	"strings"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/mesh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// The keys of the ConfigMap that istiod reads, and the name that it has without a revision.
const (
	meshMap     = "istio"
	meshKey     = "mesh"
	networksKey = "meshNetworks"
)

// Mesh is what counts for a mesh as a whole.
type Mesh struct {
	// Config is istiod's configuration, Istio's defaults included. It is nobody else's: whoever asked may change it.
	Config *meshconfig.MeshConfig
	// Networks of the mesh; empty for most.
	Networks *meshconfig.MeshNetworks
	// RootNamespace is where an object counts for the whole mesh.
	RootNamespace string
	// Source is the ConfigMap that all this was read from; nil when this world has none, and these are Istio's defaults.
	Source *Object
	// Err says why the ConfigMap could not be read, so that the defaults stand in for it.
	Err error
}

// MeshKnown says whether [World.Mesh] is the configuration of the mesh and not a guess: it was read, or a cluster was that has none.
func (w *World) MeshKnown() bool {
	m := w.Mesh()
	return m.Err == nil && (m.Source != nil || w.Live() && w.Knows("", "ConfigMap", constants.IstioSystemNamespace))
}

// MeshConfig is istiod's configuration and the root namespace, as [World.Mesh] has them.
func (w *World) MeshConfig() (config *meshconfig.MeshConfig, rootNamespace string) {
	m := w.Mesh()
	return m.Config, m.RootNamespace
}

// Mesh reads what counts for the mesh as a whole from the ConfigMap istio of istio-system, or, where the installation has a revision, from the
// first of its istio-REVISION. It is read anew each time.
func (w *World) Mesh() Mesh {
	m := Mesh{Config: mesh.DefaultMeshConfig(), Networks: mesh.DefaultMeshNetworks()}
	if m.Source = w.meshSource(); m.Source != nil {
		m.Err = m.read(m.Source.Unstructured())
	}
	m.RootNamespace = m.Config.GetRootNamespace()
	if m.RootNamespace == "" {
		m.RootNamespace = constants.IstioSystemNamespace
	}
	return m
}

// meshSource finds the ConfigMap. One of which metadata alone was read says nothing.
func (w *World) meshSource() *Object {
	id := render.ID{Kind: "ConfigMap", Namespace: constants.IstioSystemNamespace, Name: meshMap}
	if o := w.Find(id); o != nil && !o.MetadataOnly {
		return o
	}
	for _, o := range w.Of("", "ConfigMap") {
		if o.ID.Namespace != constants.IstioSystemNamespace || o.MetadataOnly || !strings.HasPrefix(o.ID.Name, meshMap+"-") {
			continue
		}
		if text, _, _ := unstructured.NestedString(o.Unstructured().Object, "data", meshKey); text != "" {
			return o
		}
	}
	return nil
}

// read the data of the ConfigMap over the defaults. What cannot be read leaves them as they are.
func (m *Mesh) read(u *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return fmt.Errorf("read %s: %w", render.IDOf(u), err)
	}
	if text := data[meshKey]; text != "" {
		config, err := mesh.ApplyMeshConfigDefaults(text)
		if err != nil {
			return fmt.Errorf("read %s of %s: %w", meshKey, render.IDOf(u), err)
		}
		m.Config = config
	}
	if text := data[networksKey]; text != "" {
		networks, err := mesh.ParseMeshNetworks(text)
		if err != nil {
			return fmt.Errorf("read %s of %s: %w", networksKey, render.IDOf(u), err)
		}
		m.Networks = networks
	}
	return nil
}
