package apply

import (
	"cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

const groupRBAC = "rbac.authorization.k8s.io"

// excuse makes an untried step out of a creation that was refused only because what it refers to is created by the same plan. The API
// server looks after few references: the role of a binding, whose rules the identity must hold, and what a bare Pod names.
func excuse(w wanted, err error, creates map[render.ID]bool) (Step, bool) {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return Step{}, false
	}
	for _, id := range referencesOf(w) {
		if creates[id] {
			step := stepOf(w)
			step.Action, step.Reason = Create, "not tried: "+id.String()+" is created first"
			step.want = formed(adjust(w, nil, nil))
			return step, true
		}
	}
	return Step{}, false
}

func referencesOf(w wanted) []render.ID {
	field := func(path ...string) string {
		text, _, _ := unstructured.NestedString(w.form.get().Object, path...)
		return text
	}
	switch w.id.GroupKind() {
	case kindRoleBinding, kindClusterRoleBinding:
		role := render.ID{Group: groupRBAC, Kind: field("roleRef", "kind"), Name: field("roleRef", "name")}
		if role.Kind == "Role" {
			role.Namespace = w.id.Namespace
		}
		return []render.ID{role}
	case kindPod:
		return []render.ID{
			{Kind: "ServiceAccount", Namespace: w.id.Namespace, Name: cmp.Or(field("spec", "serviceAccountName"), "default")},
			{Group: "scheduling.k8s.io", Kind: "PriorityClass", Name: field("spec", "priorityClassName")},
			{Group: "node.k8s.io", Kind: "RuntimeClass", Name: field("spec", "runtimeClassName")},
		}
	default:
		return nil
	}
}
