package apply

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

// keepsVersions is an error for a CRD that would lose a version which somebody relies on. One in which objects may still be stored could not be read any more, and the
// API server refuses that, in words that tell nobody what to do. One that is newer than all that Git has means that Git is older than the cluster: a downgrade, which
// would take it away from everybody who uses it, and every field that it alone has. To retire a version it is enough to say first that it is not served.
func keepsVersions(live, want *unstructured.Unstructured) error {
	if live == nil || want == nil || live.GroupVersionKind().GroupKind() != kindDefinition {
		return nil
	}
	wanted := crdVersions(want, false)
	stored, _, _ := unstructured.NestedStringSlice(live.Object, "status", "storedVersions")
	for _, name := range stored {
		if !slices.Contains(wanted, name) {
			return fmt.Errorf("would drop version %s, in which objects may still be stored (status.storedVersions): keep it in Git with served: false; "+
				"write each object once (kubectl get %s -A -o yaml | kubectl replace -f -); take %[1]s out of status.storedVersions; then drop it",
				name, live.GetName())
		}
	}
	for _, name := range crdVersions(live, true) {
		newer := func(w string) bool { return kubeversion.CompareKubeAwareVersionStrings(name, w) > 0 }
		if !slices.ContainsFunc(wanted, func(w string) bool { return !newer(w) }) {
			return fmt.Errorf("would take away version %s, which the cluster serves and which is newer than all in Git (%s): Git is older than what "+
				"lives. Bring the CustomResourceDefinition in Git up to date; to retire %[1]s all the same, commit it with served: false first",
				name, strings.Join(wanted, ", "))
		}
	}
	return nil
}

// crdVersions are the names of a CRD's versions.
func crdVersions(crd *unstructured.Unstructured, servedOnly bool) []string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var names []string
	for _, v := range versions {
		entry, _ := v.(map[string]any)
		name, _ := entry["name"].(string)
		if name != "" && (!servedOnly || entry["served"] == true) {
			names = append(names, name)
		}
	}
	return names
}
