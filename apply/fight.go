package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fights says which holders are at work at this moment, and would put back what Mooring changes. It is asked of objects that are refused or adopted
// alone, once for each holder and plan.
func (p *planner) fights(ctx context.Context, holders []Holder) []string {
	var all []string
	for _, h := range holders {
		key := string(h.Tool) + "/" + h.Kind + "/" + h.Namespace + "/" + h.Name
		p.fightsMu.Lock()
		said, known := p.fightsSeen[key]
		p.fightsMu.Unlock()
		if !known {
			said = p.fight(ctx, h)
			p.fightsMu.Lock()
			if p.fightsSeen == nil {
				p.fightsSeen = make(map[string]string)
			}
			p.fightsSeen[key] = said
			p.fightsMu.Unlock()
		}
		if said != "" {
			all = append(all, said)
		}
	}
	return all
}

// saidFights are all that were said, each once.
func (p *planner) saidFights() []string {
	p.fightsMu.Lock()
	defer p.fightsMu.Unlock()
	var all []string
	for _, said := range p.fightsSeen {
		if said != "" {
			all = append(all, said)
		}
	}
	slices.Sort(all)
	return all
}

func (p *planner) fight(ctx context.Context, h Holder) string {
	switch {
	case h.Tool == ToolFlux && h.Kind == "HelmRelease":
		return p.unsuspended(ctx, schema.GroupKind{Group: "helm.toolkit.fluxcd.io", Kind: h.Kind}, h, "helmrelease")
	case h.Tool == ToolFlux:
		return p.unsuspended(ctx, schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: h.Kind}, h, "kustomization")
	case h.Tool == ToolArgoCD:
		return p.autoSynced(ctx, h)
	case h.Tool == ToolSail && h.owner != nil:
		gv, _ := schema.ParseGroupVersion(h.owner.APIVersion)
		found, err := p.keeper(ctx, schema.GroupKind{Group: gv.Group, Kind: h.Kind}, Holder{Name: h.Name})
		if err != nil || len(found) == 0 {
			return unseen(h, err)
		}
		return fmt.Sprintf("%s %s exists, and its operator puts back what others change", h.Kind, h.Name)
	default:
		return ""
	}
}

func (p *planner) unsuspended(ctx context.Context, gk schema.GroupKind, h Holder, command string) string {
	found, err := p.keeper(ctx, gk, h)
	if err != nil || len(found) == 0 {
		return unseen(h, err)
	}
	if suspended, _, _ := unstructured.NestedBool(found[0].Object, "spec", "suspend"); suspended {
		return ""
	}
	return fmt.Sprintf("%s %s is at work and puts back what others change; stop it first: flux suspend %s %s -n %s", h.Kind, h.Name, command, h.Name, h.Namespace)
}

func (p *planner) autoSynced(ctx context.Context, h Holder) string {
	found, err := p.keeper(ctx, schema.GroupKind{Group: "argoproj.io", Kind: h.Kind}, h)
	if err != nil {
		return unseen(h, err)
	}
	for _, app := range found {
		automated, on, _ := unstructured.NestedMap(app.Object, "spec", "syncPolicy", "automated")
		if on && automated["enabled"] != false {
			return fmt.Sprintf("Application %s in %s syncs by itself and puts back what others change; stop it first: argocd app set %s --sync-policy none",
				h.Name, app.GetNamespace(), h.Name)
		}
	}
	return ""
}

// keeper finds the object that a holder is. Without a namespace it is looked for in all.
func (p *planner) keeper(ctx context.Context, gk schema.GroupKind, h Holder) ([]unstructured.Unstructured, error) {
	r, ok, err := p.catalog.kind(gk)
	if err != nil || !ok {
		return nil, err
	}
	if h.Namespace == "" && r.Namespaced {
		list, err := p.objects.Resource(r.GVR()).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + h.Name})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	found, err := p.get(ctx, r, h.Namespace, h.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []unstructured.Unstructured{*found}, nil
}

func unseen(h Holder, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("whether %s %s is at work cannot be seen: %v", h.Kind, h.Name, err)
}
