package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/security/authn"
	"istio.io/istio/pkg/config"

	"github.com/mooring-dev/mooring/render/check/world"
)

// peer is a PeerAuthentication.
type peer struct {
	object *world.Object
	*security.PeerAuthentication
	created time.Time
}

func (p peer) selector() map[string]string {
	return p.GetSelector().GetMatchLabels()
}

// peers are the PeerAuthentications of a world by namespace, the oldest first.
func (v *view) peers() map[string][]peer {
	return once(&v.known().peers, func() map[string][]peer {
		all := map[string][]peer{}
		for o, spec := range specs[*security.PeerAuthentication](v, securityGroup, "PeerAuthentication") {
			all[o.ID.Namespace] = append(all[o.ID.Namespace], peer{o, spec, v.born(o)})
		}
		for _, there := range all {
			slices.SortStableFunc(there, func(a, b peer) int { return a.created.Compare(b.created) })
		}
		return all
	})
}

// allPeers lists the PeerAuthentications of all namespaces.
func (v *view) allPeers() []peer {
	var all []peer
	for _, ns := range slices.Sorted(maps.Keys(v.peers())) {
		all = append(all, v.peers()[ns]...)
	}
	return all
}

// modeOf is how a workload takes connections, by Istio's own rules, and the policies that say so.
func (v *view) modeOf(w workload) (authn.MergedPeerAuthentication, []peer) {
	root := v.rootNamespace()
	there := v.peers()[w.namespace]
	if w.namespace != root {
		there = slices.Concat(there, v.peers()[root])
	}
	var configs []*config.Config
	var those []peer
	for _, p := range there {
		if !w.selected(p.selector()) {
			continue
		}
		those = append(those, p)
		configs = append(configs, &config.Config{
			Meta: config.Meta{Name: p.object.ID.Name, Namespace: p.object.ID.Namespace, CreationTimestamp: p.created},
			Spec: p.PeerAuthentication,
		})
	}
	return authn.ComposePeerAuthentication(root, configs), those
}

// modeOn is the mode of one port of a workload.
func modeOn(m authn.MergedPeerAuthentication, port uint32) model.MutualTLSMode {
	if mode, ok := m.PerPort[port]; ok {
		return mode
	}
	return m.Mode
}

// says gives the policy that sets a mode on a port of a workload, and the field: the narrowest one that is not unset.
func says(those []peer, root string, port uint32) (peer, string) {
	var mesh, namespace, own *peer
	for i := range slices.Backward(those) { // the oldest last
		p := &those[i]
		switch {
		case len(p.selector()) > 0 && p.object.ID.Namespace != root:
			own = p
		case len(p.selector()) == 0 && p.object.ID.Namespace == root:
			mesh = p
		case len(p.selector()) == 0:
			namespace = p
		}
	}
	if own != nil {
		if m := own.GetPortLevelMtls()[port]; m.GetMode() != security.PeerAuthentication_MutualTLS_UNSET {
			return *own, fmt.Sprintf("spec.portLevelMtls.%d.mode", port)
		}
	}
	for _, p := range []*peer{own, namespace, mesh} {
		if p != nil && p.GetMtls().GetMode() != security.PeerAuthentication_MutualTLS_UNSET {
			return *p, "spec.mtls.mode"
		}
	}
	return peer{}, ""
}

// doublePeer finds PeerAuthentications of which an older one for the same workloads leaves nothing.
var doublePeer = meshRule{
	Rule: Rule{
		Code: "MOOR040", Level: Warning,
		Title: "an older PeerAuthentication is for the same workloads, and wins",
		Mend:  "write one policy for them",
	},
	check: func(_ context.Context, v *view) {
		first := map[string]peer{}
		root := v.rootNamespace()
		for _, p := range v.allPeers() {
			ns := p.object.ID.Namespace
			if len(p.selector()) > 0 && ns == root {
				continue // MOOR042
			}
			scope := fmt.Sprint(ns, p.selector()) // a map is printed in the order of its keys
			other, taken := first[scope]
			if !taken {
				first[scope] = p
				continue
			}
			which := "is older and wins"
			if other.created.Equal(p.created) {
				which = "comes first by name and wins when both are made at once"
			}
			v.report(p.object, problem{
				Field:   "spec",
				Message: fmt.Sprintf("counts for nothing: %s is for the same workloads, %s", other.object.ID, which),
			})
		}
	},
}

// strictAtOnce finds workloads that go from plain text to mutual TLS alone in one commit.
var strictAtOnce = meshRule{
	Rule: Rule{
		Code: "MOOR024", Level: Warning,
		Title: "mutual TLS is demanded where none was possible before",
		Mend:  "commit mode: PERMISSIVE first, wait until all callers use mutual TLS, then STRICT",
	},
	check: func(_ context.Context, v *view) {
		if v.before == nil {
			return
		}
		was := &view{World: v.before}
		told := map[string]bool{}
		for _, w := range v.selectedBy(v.rootNamespace(), nil) {
			if v.before.Find(w.object.ID) == nil || !v.proxied(w) {
				continue
			}
			old, _ := was.modeOf(w)
			now, those := v.modeOf(w)
			for _, port := range portsOf(old, now) {
				if modeOn(old, port) != model.MTLSDisable || modeOn(now, port) != model.MTLSStrict {
					continue
				}
				p, field := says(those, v.rootNamespace(), port)
				if p.object == nil || told[p.object.ID.String()+field] {
					continue
				}
				told[p.object.ID.String()+field] = true
				v.report(p.object, problem{
					Field:   field,
					Message: fmt.Sprintf("%s goes from DISABLE to STRICT at once: until each caller's proxy has heard of it, calls in plain text are refused", w.object.ID),
				})
			}
		}
	},
}

// portsOf lists the ports that have modes of their own, and 0 for all others.
func portsOf(modes ...authn.MergedPeerAuthentication) []uint32 {
	ports := []uint32{0}
	for _, m := range modes {
		ports = slices.AppendSeq(ports, maps.Keys(m.PerPort))
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
