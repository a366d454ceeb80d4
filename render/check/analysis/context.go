package analysis

import (
	"fmt"
	"slices"
	"strings"

	"istio.io/api/annotation"
	"istio.io/istio/pkg/config"
	istio "istio.io/istio/pkg/config/analysis"
	"istio.io/istio/pkg/config/analysis/diag"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/config/schema/gvk"

	"github.com/mooring-dev/mooring/render/check/world"
)

// run is one analysis of one world: the Context that the analyzers see.
type run struct {
	world *world.World
	mesh  world.Mesh
	// canceled says whether to stop.
	canceled func() bool
	// analyzer that is asked just now.
	analyzer string
	// current is the instance that is visited just now.
	current *resource.Instance
	lists   map[listKey]*list
	known   *index
	// named are the hosts that routes, and those that DestinationRules name.
	named map[view]map[string]bool
	// byLabel are the labels of Pods by each of them.
	byLabel map[[2]string][]map[string]string
	// meshHosts is what sharedHost compares.
	meshHosts map[string]map[string][]string
	said      []Message
	unknown   unknowns
}

// listKey tells the lists of a kind apart: not all analyzers are given the same.
type listKey struct {
	kind config.GroupVersionKind
	view view
}

// list is the instances of a kind.
type list struct {
	all         []*resource.Instance
	byName      map[resource.FullName]*resource.Instance
	byNamespace map[resource.Namespace][]*resource.Instance
}

var _ istio.Context = (*run)(nil)

func newRun(w *world.World, canceled func() bool) *run {
	return &run{world: w, mesh: w.Mesh(), canceled: canceled, lists: map[listKey]*list{}, named: map[view]map[string]bool{}, unknown: unknowns{}}
}

// SetAnalyzer implements istio's Context.
func (r *run) SetAnalyzer(name string) {
	r.analyzer = name
}

// Canceled implements istio's Context.
func (r *run) Canceled() bool {
	return r.canceled()
}

// Exists implements istio's Context.
func (r *run) Exists(kind config.GroupVersionKind, name resource.FullName) bool {
	return r.Find(kind, name) != nil
}

// Find implements istio's Context.
func (r *run) Find(kind config.GroupVersionKind, name resource.FullName) *resource.Instance {
	return r.list(kind).byName[name]
}

// ForEach implements istio's Context. It stops when the run does.
func (r *run) ForEach(kind config.GroupVersionKind, visit istio.IteratorFn) {
	const stride = 256 // asking whether to stop costs more than most visits
	outer := r.current
	defer func() { r.current = outer }()
	for i, instance := range r.within(kind, outer) {
		if i%stride == 0 && r.Canceled() {
			return
		}
		r.current = instance
		if !visit(instance) {
			return
		}
	}
}

// within lists a kind as the current analyzer is to see it while it visits outer. Four analyzers walk over all objects of a second kind for each
// of a first, only to skip those of other namespaces: they are given those of the same namespace alone, or a mesh of 5,000
// Deployments and Services would keep them busy for a minute.
func (r *run) within(kind config.GroupVersionKind, outer *resource.Instance) []*resource.Instance {
	all := r.list(kind)
	if outer == nil {
		return all.all
	}
	switch r.analyzer {
	case "deployment.MultiServiceAnalyzer", "gateway.IngressGatewayPortAnalyzer":
		if kind == gvk.Service {
			return all.byNamespace[outer.Metadata.FullName.Namespace]
		}
	case "sidecar.SelectorAnalyzer", "telemetry.SelectorAnalyzer":
		if kind == gvk.Pod {
			return all.byNamespace[outer.Metadata.FullName.Namespace]
		}
	}
	return all.all
}

// Report implements istio's Context.
func (r *run) Report(_ config.GroupVersionKind, m diag.Message) {
	v := r.judge(m)
	if !v.keep || silenced(m) {
		return
	}
	said := Message{
		Code:  m.Type.Code(),
		Level: m.Type.Level().String(),
		Text:  strings.Join(strings.Fields(fmt.Sprintf(m.Type.Template(), m.Parameters...)), " "),
		Field: v.field,
		group: v.group,
	}
	if v.text != "" {
		said.Text = v.text
	}
	if o := originOf(m.Resource); o != nil {
		said.Object = o.object
	}
	r.said = append(r.said, said)
}

// silenced says whether the object itself asks Istio's tools not to say this.
func silenced(m diag.Message) bool {
	if m.Resource == nil {
		return false
	}
	codes := strings.Split(m.Resource.Metadata.Annotations[annotation.GalleyAnalyzeSuppress.Name], ",")
	return slices.Contains(codes, "*") || slices.Contains(codes, m.Type.Code())
}
