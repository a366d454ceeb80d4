package apply

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render"
)

// Tool is one that keeps objects as Mooring does.
type Tool string

// The tools that are known by what they leave on an object.
const (
	ToolHelm     Tool = "helm"
	ToolFlux     Tool = "flux"
	ToolArgoCD   Tool = "argocd"
	ToolIstioctl Tool = "istioctl"
	ToolSail     Tool = "sail"
	// ToolApplySet is whoever keeps an ApplySet (KEP-3659) that is no Mooring of this cluster: kubectl apply --prune --applyset, or a Mooring that is gone.
	ToolApplySet Tool = "applyset"
	// ToolController is a controller that owns the object. From it nothing is adopted: it would make the object anew.
	ToolController Tool = "controller"
)

// Tools that can be adopted from.
func Tools() []Tool {
	return []Tool{ToolHelm, ToolFlux, ToolArgoCD, ToolIstioctl, ToolSail, ToolApplySet}
}

func (t Tool) String() string {
	switch t {
	case ToolHelm:
		return "Helm"
	case ToolFlux:
		return "Flux"
	case ToolArgoCD:
		return "Argo CD"
	case ToolSail:
		return "the Sail operator"
	case ToolApplySet:
		return "another ApplySet"
	case ToolController:
		return "a controller"
	default:
		return string(t)
	}
}

// writes is true for the field managers under which a tool writes what it is told to. Helm takes the name of the program that it runs in, which in Flux
// is its helm-controller.
func (t Tool) writes(manager string) bool {
	switch t {
	case ToolHelm:
		return manager == "helm" || manager == "Helm" || manager == "helm-controller" || strings.HasPrefix(manager, "terraform-provider-helm")
	case ToolFlux:
		return manager == "kustomize-controller" || manager == "helm-controller" || manager == "flux"
	case ToolArgoCD:
		return manager == "argocd-controller" || manager == "argocd-application-controller"
	case ToolIstioctl:
		return manager == "istio-operator" || manager == "istioctl"
	case ToolSail:
		return manager == "sail-operator"
	case ToolApplySet:
		return manager == "kubectl-applyset"
	default:
		return false
	}
}

// Holder is a tool that manages an object, and what of it does: a release, an application.
type Holder struct {
	Tool Tool
	// Kind, Namespace and Name of what holds the object, as far as the object says.
	Kind, Namespace, Name string
	// Since is when the tool last wrote to the object; zero when managedFields do not say.
	Since time.Time

	signs []trace
	owner *metav1.OwnerReference
}

// String reads "Helm (release istiod in istio-system, which wrote to it last on 2026-05-01T08:00:00Z)".
func (h Holder) String() string {
	what := strings.TrimSpace(h.Kind + " " + h.Name)
	if h.Namespace != "" {
		what += " in " + h.Namespace
	}
	if !h.Since.IsZero() {
		what = strings.TrimPrefix(what+", which wrote to it last on "+h.Since.UTC().Format(time.RFC3339), ", ")
	}
	if what == "" {
		return h.Tool.String()
	}
	return h.Tool.String() + " (" + what + ")"
}

// Aftercare is what a person has to do about the tool, so that it does not take the object back or away. Mooring does none of it.
func (h Holder) Aftercare() string {
	switch h.Tool {
	case ToolHelm:
		return fmt.Sprintf("never run helm uninstall %[1]s or helm upgrade %[1]s again: Helm deletes what its release lists, whoever has it now. "+
			"kubectl delete secret -n %[2]s -l owner=helm,name=%[1]s lets Helm forget the release and touches nothing else", h.Name, h.Namespace)
	case ToolFlux:
		if h.Kind == "HelmRelease" {
			return fmt.Sprintf("keep the HelmRelease suspended (flux suspend helmrelease %[1]s -n %[2]s) and delete it so: a suspended one is not uninstalled", h.Name, h.Namespace)
		}
		return fmt.Sprintf("take the objects out of the path of the Kustomization (flux suspend kustomization %[1]s -n %[2]s until that is done); "+
			"with its labels gone Flux does not prune them", h.Name, h.Namespace)
	case ToolArgoCD:
		return fmt.Sprintf("take the objects out of the Application, or delete that without its objects (argocd app delete %s --cascade=false)", h.Name)
	case ToolIstioctl:
		return "do not run istioctl install, upgrade or uninstall for this revision again: uninstall --purge deletes whatever carries the labels of Istio's charts"
	case ToolSail:
		return fmt.Sprintf("the operator makes the objects anew as long as the %s %s exists; delete it once everything is adopted", h.Kind, h.Name)
	case ToolApplySet:
		return "do not apply that set with --prune again while it lists the object"
	default:
		return ""
	}
}

// trace is a label or an annotation by which a tool knows its objects: with it the tool prunes them, or puts them back.
type trace struct {
	field string // labels or annotations
	key   string
}

const (
	labels      = "labels"
	annotations = "annotations"
)

// value of a sign on an object. One that we applied says what Git says, and nothing of a tool.
func (s trace) value(m metav1.Object) string {
	all := m.GetLabels()
	if s.field == annotations {
		all = m.GetAnnotations()
	}
	if all[s.key] == "" || ownedByUs(m, "metadata", s.field, s.key) {
		return ""
	}
	return all[s.key]
}

// holdersOf an object: every tool that it carries the signs of. unit is the ApplySet that asks.
func holdersOf(id render.ID, m metav1.Object, unit string) []Holder {
	find := func(field, key string) string { return trace{field, key}.value(m) }
	var found []Holder
	add := func(h Holder, signs ...trace) {
		h.Since, h.signs = lastWrite(m, h.Tool), signs
		found = append(found, h)
	}
	sail := sailOwner(m)
	if sail != nil {
		add(Holder{Tool: ToolSail, Kind: sail.Kind, Name: sail.Name, owner: sail}, helmSigns()...)
	} else if find(labels, "managed-by") == "sail-operator" {
		add(Holder{Tool: ToolSail}, append(helmSigns(), trace{labels, "managed-by"})...)
	}
	helmByFlux := false
	for _, kind := range []string{"helm", "kustomize"} {
		prefix := kind + ".toolkit.fluxcd.io/"
		if name := find(labels, prefix+"name"); name != "" {
			h := Holder{Tool: ToolFlux, Kind: "Kustomization", Name: name, Namespace: find(labels, prefix+"namespace")}
			signs := []trace{{labels, prefix + "name"}, {labels, prefix + "namespace"}}
			if kind == "helm" {
				h.Kind, helmByFlux = "HelmRelease", true
				signs = append(signs, helmSigns()...)
			}
			add(h, signs...)
		}
	}
	if app, signs := argoApp(id, m); app != "" {
		namespace, name, qualified := strings.Cut(app, "_")
		if !qualified {
			namespace, name = "", app
		}
		add(Holder{Tool: ToolArgoCD, Kind: "Application", Name: name, Namespace: namespace}, signs...)
	}
	release := find(annotations, helmRelease)
	if release != "" && m.GetLabels()["app.kubernetes.io/managed-by"] == "Helm" && !helmByFlux && len(found) == 0 {
		add(Holder{Tool: ToolHelm, Kind: "release", Name: release, Namespace: find(annotations, helmNamespace)}, helmSigns()...)
	}
	if find(labels, istioManaged) != "" {
		add(Holder{Tool: ToolIstioctl, Kind: "IstioOperator", Name: find(labels, istioOwner), Namespace: find(labels, istioOwner+"-namespace")},
			trace{labels, istioManaged}, trace{labels, istioOwner}, trace{labels, istioOwner + "-namespace"})
	}
	if set := m.GetLabels()[PartOfLabel]; set != "" && set != unit && unit != "" {
		add(Holder{Tool: ToolApplySet, Name: set})
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil && sail == nil {
		add(Holder{Tool: ToolController, Kind: owner.Kind, Name: owner.Name})
	}
	return found
}

const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	istioManaged  = "operator.istio.io/managed"
	istioOwner    = "install.operator.istio.io/owning-resource"
	argoTracking  = "argocd.argoproj.io/tracking-id"
	argoInstance  = "argocd.argoproj.io/instance"
	instance      = "app.kubernetes.io/instance"
)

func helmSigns() []trace {
	return []trace{{annotations, helmRelease}, {annotations, helmNamespace}}
}

func sailOwner(m metav1.Object) *metav1.OwnerReference {
	for _, o := range m.GetOwnerReferences() {
		if strings.HasPrefix(o.APIVersion, "sailoperator.io/") {
			return &o
		}
	}
	return nil
}

// argoApp is the application that an object belongs to. The tracking id names the object as well, so that a copy of it is nobody's. The label that Argo CD
// used before, app.kubernetes.io/instance, is on what everybody makes: it counts where Argo CD wrote the object.
func argoApp(id render.ID, m metav1.Object) (string, []trace) {
	tracking := trace{annotations, argoTracking}
	if parts := strings.Split(tracking.value(m), ":"); len(parts) == 3 {
		group, kind, _ := strings.Cut(parts[1], "/")
		_, name, _ := strings.Cut(parts[2], "/")
		if group == id.Group && kind == id.Kind && name == id.Name {
			return parts[0], []trace{tracking, {labels, argoInstance}}
		}
	}
	if app := (trace{labels, argoInstance}).value(m); app != "" {
		return app, []trace{{labels, argoInstance}}
	}
	if app := (trace{labels, instance}).value(m); app != "" && !lastWrite(m, ToolArgoCD).IsZero() {
		return app, []trace{{labels, instance}}
	}
	return "", nil
}

// lastWrite is when a tool last wrote to the object under a name of its own.
func lastWrite(m metav1.Object, t Tool) time.Time {
	var last time.Time
	for _, entry := range m.GetManagedFields() {
		if t.writes(entry.Manager) && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// toolsOf holders, each once.
func toolsOf(holders []Holder) []Tool {
	var tools []Tool
	for _, h := range holders {
		tools = append(tools, h.Tool)
	}
	slices.Sort(tools)
	return slices.Compact(tools)
}
