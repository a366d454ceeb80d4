package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config/labels"

	"github.com/mooring-dev/mooring/render/check/world"
)

// credentialElsewhere finds certificates of Gateways that are made beside the Gateway and not beside the pods that need them.
//
// Where Pods and Secrets are known, IST0101 says that a Secret is missing and IST0161 that it is no certificate; this rule knows from files alone, by the
// workloads and by what makes the Secret, that it will be in the wrong place.
var credentialElsewhere = meshRule{
	Rule: Rule{
		Code: "MOOR026", Level: Warning,
		Title: "the certificate of a Gateway is in another namespace than its pods",
		Mend:  "make the Secret in the namespace of the gateway's pods",
	},
	check: func(_ context.Context, v *view) {
		for o, gw := range specs[*networking.Gateway](v, networkingGroup, "Gateway") {
			if len(gw.GetSelector()) == 0 {
				continue // MOOR025
			}
			if slices.ContainsFunc(v.Of("", "Pod"), func(o *world.Object) bool { return labels.Instance(gw.GetSelector()).SubsetOf(o.GetLabels()) }) {
				continue // Istio's analyzer has looked
			}
			pods := servedIn(v.selectedBy(v.rootNamespace(), gw.GetSelector()))
			for i, s := range gw.GetServers() {
				name := s.GetTls().GetCredentialName()
				if name == "" || strings.Contains(name, "://") {
					continue
				}
				field := fmt.Sprintf("spec.servers[%d].tls.credentialName", i)
				if len(pods) == 0 && v.Live() {
					continue // IST0101 says that nothing is selected
				}
				if len(pods) == 0 {
					v.unknown(fmt.Sprintf("%s of %s", field, o.ID), "the pods that "+labels.Instance(gw.GetSelector()).String()+" selects are not known")
					continue
				}
				makers := v.secretMakers(name)
				if len(makers) == 0 || slices.ContainsFunc(makers, func(m maker) bool { return m.copied || slices.Contains(pods, m.namespace) }) {
					continue
				}
				v.report(o, problem{
					Field:   field,
					Message: fmt.Sprintf("%s makes the Secret %s in %s, but the gateway's pods run in %s and look for it there", makers[0].what, name, makers[0].namespace, strings.Join(pods, " and ")),
				})
			}
		}
	},
}

// servedIn lists the namespaces of what a Gateway selects.
func servedIn(selected []workload) (namespaces []string) {
	for _, w := range selected {
		namespaces = append(namespaces, w.namespace)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// maker is a Secret, or what makes one.
type maker struct {
	what, namespace string
	// copied says that something is asked to copy it to other namespaces.
	copied bool
}

func makerOf(o *world.Object) maker {
	content := fmt.Sprint(o.Unstructured().Object)
	return maker{o.ID.String(), o.ID.Namespace, strings.Contains(content, "reflector") || strings.Contains(content, "replicat")}
}

// secretMakers finds a Secret by its name, and what controllers will make it of.
func (v *view) secretMakers(name string) []maker {
	var all []maker
	for _, o := range v.Of("", "Secret") {
		if o.ID.Name == name {
			all = append(all, makerOf(o))
		}
	}
	for _, k := range []struct {
		group, kind string
		path        []string
	}{
		{"cert-manager.io", "Certificate", []string{"spec", "secretName"}},
		{"external-secrets.io", "ExternalSecret", []string{"spec", "target", "name"}},
		{"bitnami.com", "SealedSecret", []string{"spec", "template", "metadata", "name"}},
	} {
		for _, o := range v.Of(k.group, k.kind) {
			made := text(o.Unstructured(), k.path...)
			if made == name || made == "" && k.kind != "Certificate" && o.ID.Name == name {
				all = append(all, makerOf(o))
			}
		}
	}
	return all
}
