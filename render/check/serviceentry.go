package check

import (
	"context"
	"fmt"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/world"
)

// doubleHost finds ServiceEntries for a host that is known already, as far as they are lost.
var doubleHost = meshRule{
	Rule: Rule{
		Code: "MOOR032", Level: Warning,
		Title: "the host of a ServiceEntry is known already",
		Mend:  "describe a host once",
	},
	check: func(_ context.Context, v *view) {
		byHost := map[string][]entry{}
		for o, spec := range specs[*networking.ServiceEntry](v, networkingGroup, "ServiceEntry") {
			for i, h := range spec.GetHosts() {
				e := entry{o, spec, index("spec.hosts", i)}
				v.compareWithService(e, h)
				byHost[h] = append(byHost[h], e)
			}
		}
		for _, h := range slices.Sorted(maps.Keys(byHost)) {
			entries := byHost[h]
			slices.SortStableFunc(entries, func(a, b entry) int { return v.born(a.object).Compare(v.born(b.object)) })
			for i, e := range entries {
				for _, older := range entries[:i] {
					v.compareEntries(older, e, h)
				}
			}
		}
	},
}

// entry is a ServiceEntry, by one of its hosts.
type entry struct {
	object *world.Object
	*networking.ServiceEntry
	field string
}

func (e entry) forAll() bool {
	return len(e.GetExportTo()) == 0 || slices.Contains(e.GetExportTo(), "*")
}

// compareWithService says what becomes of an entry for the host of a Service of Kubernetes.
func (v *view) compareWithService(e entry, host string) {
	for _, s := range v.Of("", "Service") {
		if host != s.ID.Name+"."+s.ID.Namespace+".svc.cluster.local" || s.GetAnnotations()["networking.istio.io/exportTo"] != "" {
			continue
		}
		switch {
		case s.ID.Namespace != e.object.ID.Namespace && e.forAll():
			v.report(e.object, problem{
				Field:   e.field,
				Message: fmt.Sprintf("%s is %s: callers in %s go by this entry, all others by the Service", host, s.ID, e.object.ID.Namespace),
				Mend:    `give the entry exportTo: ["."] if that is meant, or take a host of its own`,
			})
		case s.ID.Namespace == e.object.ID.Namespace && len(e.GetEndpoints()) == 0 && e.GetWorkloadSelector() == nil:
			v.report(e.object, problem{
				Field:   e.field,
				Message: fmt.Sprintf("%s is %s, which wins: the entry counts for nothing", host, s.ID),
				Mend:    "remove the entry, or take a host of its own",
			})
		}
	}
}

// compareEntries says what an older entry for a host leaves of a younger one.
func (v *view) compareEntries(older, younger entry, host string) {
	if older.object == younger.object {
		return
	}
	apart := older.object.ID.Namespace != younger.object.ID.Namespace
	if apart && (!older.forAll() || !younger.forAll()) {
		return
	}
	lost := ""
	if a, b := older.GetResolution(), younger.GetResolution(); a != b {
		lost = fmt.Sprintf("resolution %s there and %s here", a, b)
	} else if port := newPort(older, younger); port != 0 && (apart || !maps.Equal(older.object.GetLabels(), younger.object.GetLabels())) {
		lost = fmt.Sprintf("port %d is here alone", port)
	}
	switch {
	case lost == "":
	case apart:
		v.report(younger.object, problem{
			Field:   younger.field,
			Message: fmt.Sprintf("%s has %s too, differently (%s): callers in other namespaces get one of the two", older.object.ID, host, lost),
			Mend:    `describe the host once for all, or give each entry exportTo: ["."]`,
		})
	default:
		v.report(younger.object, problem{
			Field:   younger.field,
			Message: fmt.Sprintf("%s has %s too, differently (%s): the older of the two wins", older.object.ID, host, lost),
		})
	}
}

// newPort is a port that only the younger of two entries has; 0 when there is none.
func newPort(older, younger entry) uint32 {
	for _, p := range younger.GetPorts() {
		if !slices.ContainsFunc(older.GetPorts(), func(o *networking.ServicePort) bool { return o.GetNumber() == p.GetNumber() }) {
			return p.GetNumber()
		}
	}
	return 0
}
