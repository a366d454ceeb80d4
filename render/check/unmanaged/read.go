package unmanaged

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// Neighbourhood is a cluster as far as findings need it: of the objects that were read it holds those alone that nobody manages. It is read-only, and safe for concurrent use.
type Neighbourhood struct {
	// strays are the objects of the mesh's groups that nobody manages.
	strays []*object
	// services, gateways and entries by namespace, whoever has them.
	services, gateways, entries map[string][]*place
	// workloads by namespace.
	workloads map[string][]*workload
	// routed are the hosts, in full, for which some VirtualService stands in the sidecars.
	routed map[string]bool
	// root is the namespace where an object counts for the whole mesh.
	root string
}

// object of a cluster. What is asked of all of them each time is at hand, and the rest is looked at only where something comes of it.
type object struct {
	content *render.Content
	id      render.ID
	// hosts that it is about, completed: all Moorings ask every stray object for them.
	hosts []string
}

func newObject(c *render.Content) *object {
	o := &object{content: c, id: c.ID()}
	o.hosts = o.readHosts()
	return o
}

// tree is all of the object.
func (o *object) tree() map[string]any { return o.content.Unstructured().Object }

// place is an object that hosts lead to.
type place struct {
	id       render.ID
	hosts    []string
	selector map[string]string
}

func placeOf(o *object) *place { return &place{id: o.id, hosts: o.hosts, selector: o.selector()} }

// workload is a set of like pods, or a pod that none of them makes.
type workload struct {
	id     render.ID
	labels map[string]string
	// owns are the labels by which it knows its pods.
	owns map[string]string
}

// Read what lives.
func Read(c *world.Cluster, owners Owners) *Neighbourhood {
	n := &Neighbourhood{
		services: map[string][]*place{}, gateways: map[string][]*place{}, entries: map[string][]*place{}, workloads: map[string][]*workload{}, routed: map[string]bool{},
		root: rootOf(c),
	}
	var pods []*object
	for _, u := range c.Objects {
		o := newObject(render.ContentOf(u))
		if inMesh(o.id) && !owners.have(u) && !excused(u) {
			n.strays = append(n.strays, o)
		}
		switch {
		case o.id.Group == "" && o.id.Kind == "Service":
			n.services[o.id.Namespace] = append(n.services[o.id.Namespace], placeOf(o))
		case o.is("Gateway"):
			n.gateways[o.id.Namespace] = append(n.gateways[o.id.Namespace], placeOf(o))
		case o.is("ServiceEntry"):
			n.entries[o.id.Namespace] = append(n.entries[o.id.Namespace], placeOf(o))
		case o.is("VirtualService") && slices.Contains(o.boundTo(), meshGateway):
			for _, h := range o.hosts {
				n.routed[h] = true
			}
		case o.id.Group == "apps":
			if w := workloadOf(o); w != nil {
				n.workloads[o.id.Namespace] = append(n.workloads[o.id.Namespace], w)
			}
		case o.id.Group == "" && o.id.Kind == "Pod":
			pods = append(pods, o)
		}
	}
	n.addPods(pods)
	n.gather()
	slices.SortFunc(n.strays, func(x, y *object) int { return strings.Compare(x.id.String(), y.id.String()) })
	return n
}

// gather moves the texts that stay into one piece, away from those of the reading, most of which goes.
func (n *Neighbourhood) gather() {
	var all []*string
	for _, kind := range []map[string][]*place{n.services, n.gateways, n.entries} {
		for _, places := range kind {
			for _, p := range places {
				p.hosts = slices.Clone(p.hosts)
				all = append(all, &p.id.Group, &p.id.Kind, &p.id.Namespace, &p.id.Name)
				for i := range p.hosts {
					all = append(all, &p.hosts[i])
				}
			}
		}
	}
	render.Gather(all)
}

// Rest lets go of what is not needed between two questions, and tells about how many bytes that is; see [render.Set.Rest].
func (n *Neighbourhood) Rest(idle bool) (letGo int64) {
	if n == nil {
		return 0
	}
	all := make([]*render.Content, len(n.strays))
	for i, o := range n.strays {
		all[i] = o.content
	}
	return render.Rest(all, idle)
}

// Unread are the kinds that are judged, or that tell what a Mooring has, and that could not be read.
func Unread(c *world.Cluster) []schema.GroupKind {
	var kinds []schema.GroupKind
	for gk := range c.Unread {
		switch gk.Group {
		case "", "apps":
			if gk.Kind != "Service" && gk.Kind != "Pod" && gk.Group == "" {
				continue
			}
		default:
			if !inMesh(render.ID{Group: gk.Group, Kind: gk.Kind}) {
				continue
			}
		}
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(x, y schema.GroupKind) int { return strings.Compare(x.String(), y.String()) })
	return kinds
}

// have says whether an object is a Mooring's, or may be.
func (ow Owners) have(u *unstructured.Unstructured) bool {
	owner := OwnerOf(u)
	return owner != "" && (ow.Names[owner] != "" || !ow.All)
}

// Owned are the living objects of each ApplySet, by its id.
func Owned(c *world.Cluster) map[string][]*render.Content {
	owned := map[string][]*render.Content{}
	for _, u := range c.Objects {
		if owner := OwnerOf(u); owner != "" {
			owned[owner] = append(owned[owner], render.ContentOf(u))
		}
	}
	return owned
}

// is says whether an object is of a kind of Istio's traffic management.
func (o *object) is(kind string) bool {
	return o.id.Group == "networking.istio.io" && o.id.Kind == kind
}

func workloadOf(o *object) *workload {
	template := o.texts("spec", "template", "metadata", "labels")
	if template == nil {
		return nil // a ReplicaSet's owner, or a ControllerRevision
	}
	w := &workload{id: o.id, labels: template, owns: o.texts("spec", "selector", "matchLabels")}
	if len(w.owns) == 0 {
		w.owns = w.labels
	}
	return w
}

// addPods that no workload makes.
func (n *Neighbourhood) addPods(pods []*object) {
	makers := make(map[string][]*workload, len(n.workloads))
	maps.Copy(makers, n.workloads)
	for _, o := range pods {
		labels := o.content.GetLabels()
		if slices.ContainsFunc(makers[o.id.Namespace], func(w *workload) bool { return len(w.owns) > 0 && within(w.owns, labels) }) {
			continue
		}
		n.workloads[o.id.Namespace] = append(n.workloads[o.id.Namespace], &workload{id: o.id, labels: labels})
	}
}

// rootOf reads the mesh's configuration alone.
func rootOf(c *world.Cluster) string {
	only := &world.Cluster{}
	for _, u := range c.Objects {
		if u.GetKind() == "ConfigMap" {
			only.Objects = append(only.Objects, u)
		}
	}
	_, root := world.NewConverter().Before(only).MeshConfig()
	return root
}

// within says whether labels pick something with those others. None pick everything.
func within(selector, labels map[string]string) bool {
	for key, value := range selector {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
