package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Levels of policies: who is believed, then who may come in, then who may not.
const (
	levelAuthentication = iota
	levelAllow
	levelDeny
)

// Levels of the deletes of policies, before all other deletes.
const (
	levelUndeny = iota - 2
	levelUnallow
)

// rootNamespace is where a policy counts for the whole mesh, unless the installation says another one.
const rootNamespace = "istio-system"

func isPolicy(gk schema.GroupKind) bool {
	return gk.Group == groupSecurity
}

// isMesh is true for the kinds of Istio and of the Gateway API.
func isMesh(gk schema.GroupKind) bool {
	switch gk.Group {
	case groupNetworking, groupSecurity, groupGatewayAPI, "telemetry.istio.io", "extensions.istio.io":
		return true
	default:
		return false
	}
}

// orderPolicies: what lets more through comes before everything that relies on it, and what lets less through after it.
func (a *arranger) orderPolicies(ctx context.Context, steps []Step) ([]Step, error) {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.writes() && isPolicy(s.ID.GroupKind()) }) {
		return steps, nil
	}
	modes, err := a.modes(ctx, steps)
	if err != nil {
		return nil, err
	}
	var all []Step
	for _, s := range steps {
		switch gk := s.ID.GroupKind(); {
		case !s.writes() || s.release:
			all = append(all, s)
		case gk == kindAuthorization && s.unwanted:
			s.level = levelUnallow
			if denies(a.removed[s.ID]) {
				s.level = levelUndeny
			}
			all = append(all, s)
		case s.unwanted:
			all = append(all, s)
		case gk == kindPeerAuth:
			all = append(all, mutualTLS(s, modes)...)
		case gk == kindAuthorization:
			s.level = levelAllow
			if denies(s.want.get()) {
				s.level = levelDeny
			}
			all = append(all, s)
		default:
			all = append(all, s)
		}
	}
	settlePolicies(all)
	return all, nil
}

// settlePolicies makes each level wait until the one before has reached the proxies.
func settlePolicies(steps []Step) {
	wrote := func(st stage, below int) bool {
		return slices.ContainsFunc(steps, func(s Step) bool {
			return s.stage == st && s.level < below && s.writes() && isPolicy(s.ID.GroupKind())
		})
	}
	for i, s := range steps {
		switch {
		case s.stage == stagePolicies && s.ID.GroupKind() != kindPeerAuth:
			steps[i].settle = wrote(stagePolicies, s.level)
		case s.stage == stagePrune && s.level == levelUnallow:
			steps[i].settle = wrote(stagePrune, levelUnallow)
		case s.stage == stageDestinations && s.ID.GroupKind() == kindDestinationRule && wrote(stageLoosened, levelDeny):
			steps[i].settle = true
		}
	}
}

// denies is true for an AuthorizationPolicy that lets less through than there was without it: DENY, CUSTOM, and an ALLOW that allows nothing, which is how
// Istio spells "deny all".
func denies(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	switch textAt(u.Object, "spec", "action") {
	case "", "ALLOW":
		return len(mapsAt(u.Object, "spec", "rules")) == 0
	case "AUDIT":
		return false
	default:
		return true
	}
}

// mutualTLS arranges a PeerAuthentication. Clients and servers change at different moments, so from DISABLE to STRICT and back it is PERMISSIVE in between.
func mutualTLS(s Step, modes map[string]string) []Step {
	inherited := knownMode(modes[s.ID.Namespace], knownMode(modes[rootNamespace], modePermissive))
	if selectsNothing(s.want.get()) {
		inherited = knownMode(modes[rootNamespace], modePermissive)
		if s.ID.Namespace == rootNamespace {
			inherited = modePermissive
		}
	}
	between := permissive(s.want.get(), s.live, inherited)
	switch {
	case between != nil:
		first, last := s, s
		first.want, first.hash, first.stage = formed(between), "", stageLoosened
		first.Reason = join(s.Reason, "PERMISSIVE until all have heard of it")
		if s.applied != nil {
			first.applied = permissive(s.applied, s.live, inherited)
			first.Diff = append(diffObjects(s.ID, s.live, first.applied), s.taken...)
			last.Diff = diffObjects(s.ID, first.applied, s.applied)
		}
		unstructured.RemoveNestedField(between.Object, "metadata", "annotations", AppliedAnnotation)
		last.Action, last.again, last.counted = Update, true, true
		last.level, last.settle = levelDeny, true
		last.take, last.precondition, last.Reason = false, "", ""
		last.needs = append(last.needs, s.ID)
		if first.applied != nil && len(first.Diff) == 0 && s.Reason == "" {
			last.again, last.needs = false, nil
			return []Step{last} // it lives so already
		}
		return []Step{first, last}
	case strictest(s.want.get(), inherited) != modePermissive:
		s.level, s.settle = levelDeny, true
	default:
		s.stage = stageLoosened
	}
	return []Step{s}
}

// strictest mode that the object asks for anywhere.
func strictest(u *unstructured.Unstructured, inherited string) string {
	found := knownMode(textAt(u.Object, "spec", "mtls", "mode"), inherited)
	ports, _ := valueAt(u.Object, "spec", "portLevelMtls").(map[string]any)
	for port := range ports {
		if mode := knownMode(textAt(u.Object, "spec", "portLevelMtls", port, "mode"), found); mode != modePermissive {
			found = mode
		}
	}
	return found
}

// selectsNothing is true for a policy of a whole namespace.
func selectsNothing(u *unstructured.Unstructured) bool {
	labels, _ := valueAt(u.Object, "spec", "selector", "matchLabels").(map[string]any)
	return len(labels) == 0
}

// modes of mutual TLS that count for whole namespaces today, by namespace. They are only asked for when a policy of that kind is written.
func (a *arranger) modes(ctx context.Context, steps []Step) (map[string]string, error) {
	if !slices.ContainsFunc(steps, func(s Step) bool { return s.ID.GroupKind() == kindPeerAuth && s.writes() && !s.unwanted }) {
		return nil, nil
	}
	found, err := a.liveOf(ctx, kindPeerAuth)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kindPeerAuth, err)
	}
	modes := make(map[string]string)
	for _, u := range found {
		if selectsNothing(u) {
			modes[u.GetNamespace()] = textAt(u.Object, "spec", "mtls", "mode")
		}
	}
	return modes, nil
}
