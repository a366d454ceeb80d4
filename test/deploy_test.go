package test_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"istio.io/istio/pkg/config/schema/collections"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

// deploySet renders what `kubectl apply -k deploy` would apply.
func deploySet(t *testing.T) *render.Set {
	t.Helper()
	set, err := sync.NewRenderer().Render(t.Context(), os.DirFS(root(t)), "deploy")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// deployed decodes all objects of the kind of T, refusing fields that it does not have.
func deployed[T any](t *testing.T, kind string) []T {
	t.Helper()
	var list []T
	for _, o := range deploySet(t).Objects {
		if o.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Unstructured().Object, &typed, true); err != nil {
			t.Errorf("%s: %v", o.ID(), err)
		}
		list = append(list, typed)
	}
	if len(list) == 0 {
		t.Fatalf("deploy has no %s", kind)
	}
	return list
}

func TestDeployIsComplete(t *testing.T) {
	set := deploySet(t)
	found, err := check.Check(t.Context(), set)
	if err != nil || len(found) != 0 {
		t.Errorf("found %v, %v", found, err)
	}
	var ids []string
	for _, o := range set.Objects {
		ids = append(ids, o.ID().String())
		if ns := o.GetNamespace(); ns != "" && ns != "mooring-system" {
			t.Errorf("%s is in another namespace", o.ID())
		}
	}
	for _, want := range []string{
		"Namespace/mooring-system",
		"CustomResourceDefinition/moorings.mooring.dev",
		"CustomResourceDefinition/appconfigurations.mooring.dev",
		"ValidatingAdmissionPolicy/appconfigurations.mooring.dev",
		"ServiceAccount/mooring-system/mooring",
		"Deployment/mooring-system/mooring",
		"PodDisruptionBudget/mooring-system/mooring",
		"Service/mooring-system/mooring-metrics",
	} {
		if !slices.Contains(ids, want) {
			t.Errorf("%s is missing", want)
		}
	}
	definitions, err := fs.Glob(os.DirFS(root(t)), "deploy/crds/*.yaml")
	if err != nil || len(definitions) == 0 {
		t.Fatalf("no generated definitions: %v", err)
	}
	for _, file := range definitions {
		if !slices.ContainsFunc(set.Files, func(f render.File) bool { return f.Path == file }) {
			t.Errorf("%s is generated and not installed", file)
		}
	}
}

// TestAppConfigurationIsTaught asks kubectl about the fields of an AppConfiguration, as its description tells users to, and applies one, which does nothing
// and is told so.
func TestAppConfigurationIsTaught(t *testing.T) {
	cluster := kube.Start(t)
	if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(root(t), "deploy")); err != nil {
		t.Fatal(err)
	}
	var out string
	poll.Await(t, time.Minute, "the new kind is served", func() (err error) {
		out, err = cluster.Kubectl(t.Context(), "explain", "appconfiguration.spec.destinationRule.trafficPolicy.ejectionSettings")
		return err
	})
	for _, want := range []string{"mooring.dev", "AppConfiguration", "consecutiveErrors", "trafficPolicy.outlierDetection"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl explain lacks %q:\n%s", want, out)
		}
	}
	one := filepath.Join(t.TempDir(), "app.yaml")
	written := "apiVersion: mooring.dev/v1alpha1\nkind: AppConfiguration\nmetadata: {name: web}\nspec: {peerAuthentication: {mode: STRICT}}\n"
	if err := os.WriteFile(one, []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	poll.Await(t, time.Minute, "whoever applies one is told that it does nothing", func() error { // the API server takes a moment to know a new policy
		cmd := exec.CommandContext(t.Context(), cluster.KubectlPath(), "--kubeconfig", cluster.Kubeconfig(), "apply", "--dry-run=server", "-n", cluster.Namespace(t), "-f", one)
		cmd.Env = append(os.Environ(), "KUBECACHEDIR="+t.TempDir())
		both, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("apply an AppConfiguration: %v\n%s", err, both)
		}
		if !strings.Contains(string(both), "Warning:") || !strings.Contains(string(both), "does nothing. Keep it in Git") {
			return fmt.Errorf("kubectl says %s", both)
		}
		return nil
	})
}

func TestDeploymentIsLockedDown(t *testing.T) {
	d := deployed[appsv1.Deployment](t, "Deployment")[0]
	pod := d.Spec.Template.Spec
	if d.Spec.Replicas == nil || *d.Spec.Replicas != 2 {
		t.Error("not two replicas")
	}
	if len(pod.Containers) != 1 || pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Fatal("the pod is not one container without the host's namespaces")
	}
	if len(pod.TopologySpreadConstraints) == 0 {
		t.Error("both replicas may land on one node")
	}
	c := pod.Containers[0]
	ps, cs := pod.SecurityContext, c.SecurityContext
	for what, ok := range map[string]bool{
		"is not root":                 ps.RunAsNonRoot != nil && *ps.RunAsNonRoot && ps.RunAsUser != nil && *ps.RunAsUser > 0,
		"has the runtime's seccomp":   ps.SeccompProfile != nil && ps.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
		"has a read-only root":        cs.ReadOnlyRootFilesystem != nil && *cs.ReadOnlyRootFilesystem,
		"cannot gain privileges":      cs.AllowPrivilegeEscalation != nil && !*cs.AllowPrivilegeEscalation,
		"is not privileged":           cs.Privileged == nil || !*cs.Privileged,
		"has no capabilities":         cs.Capabilities != nil && slices.Equal(cs.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(cs.Capabilities.Add) == 0,
		"asks for processor time":     !c.Resources.Requests.Cpu().IsZero(),
		"asks for memory":             !c.Resources.Requests.Memory().IsZero(),
		"has a limit on memory":       !c.Resources.Limits.Memory().IsZero(),
		"has a limit on disk":         !c.Resources.Limits.StorageEphemeral().IsZero(),
		"has an image with a version": strings.Count(c.Image, ":") == 1 && !strings.HasSuffix(c.Image, ":latest"),
	} {
		if !ok {
			t.Errorf("not true: the container %s", what)
		}
	}
	for _, v := range pod.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s is not an emptyDir with a limit", v.Name)
		}
	}
}

// The image is built for what the Deployment asks of it.
func TestDockerfileFitsTheDeployment(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	dockerfile := read("Dockerfile")
	user := deployed[appsv1.Deployment](t, "Deployment")[0].Spec.Template.Spec.SecurityContext.RunAsUser
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read("go.mod"))
	if user == nil || version == nil {
		t.Fatal("no user in the Deployment, or no version in go.mod")
	}
	for _, want := range []string{
		"ARG BUILDER=golang:" + version[1] + "\n", "ARG BASE=", "FROM ${BUILDER} ", "FROM ${BASE}\n",
		"CGO_ENABLED=0 go build", fmt.Sprintf("USER %d:%d\n", *user, *user), "/etc/ssl/certs/ca-certificates.crt",
	} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("Dockerfile has no %q", want)
		}
	}
}

// What is named in one object and meant in another.
func TestDeploymentFitsTogether(t *testing.T) {
	d := deployed[appsv1.Deployment](t, "Deployment")[0]
	c := d.Spec.Template.Spec.Containers[0]
	podLabels := labels.Set(d.Spec.Template.Labels)
	if !labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(podLabels) {
		t.Error("the Deployment does not select its own pods")
	}
	if pdb := deployed[policyv1.PodDisruptionBudget](t, "PodDisruptionBudget")[0]; !labels.SelectorFromSet(pdb.Spec.Selector.MatchLabels).Matches(podLabels) {
		t.Error("the PodDisruptionBudget does not select the pods")
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	svc := deployed[corev1.Service](t, "Service")[0]
	if !labels.SelectorFromSet(svc.Spec.Selector).Matches(podLabels) || svc.Spec.Ports[0].TargetPort != intstr.FromString("metrics") {
		t.Error("the Service does not lead to the metrics of the pods")
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port != intstr.FromString("health") {
			t.Errorf("no probe asks for %s", path)
		}
	}
	if ports["metrics"] != 8080 || ports["health"] != 8081 {
		t.Errorf("ports %v", ports)
	}
	for _, want := range []string{"--leader-elect", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081"} {
		if !slices.Contains(c.Args, want) {
			t.Errorf("the agent is not started with %s: %v", want, c.Args)
		}
	}
	mounted := false
	for _, m := range c.VolumeMounts {
		mounted = mounted || slices.Contains(c.Args, "--store="+m.MountPath)
	}
	if !mounted {
		t.Error("--store is not on a volume, and the root is read-only")
	}
	faults, err := untrueCall(t.Context(), buildMooring(t), c.Args)
	if err != nil || len(faults) > 0 {
		t.Errorf("the agent's arguments: %v, %v", faults, err)
	}
}

// TestRightsAreNamed looks for what would make the agent more than it must be.
func TestRightsAreNamed(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, r := range deployed[rbacv1.ClusterRole](t, "ClusterRole") {
		roles["ClusterRole/"+r.Name] = r.Rules
	}
	for _, r := range deployed[rbacv1.Role](t, "Role") {
		roles["Role/"+r.Name] = r.Rules
	}
	for name, rules := range roles {
		for _, rule := range rules {
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			for _, word := range words {
				if strings.Contains(word, "*") {
					t.Errorf("%s holds %q", name, word)
				}
			}
			for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection", "approve", "sign"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s may %s", name, verb)
				}
			}
			if slices.Contains(rule.APIGroups, rbacv1.GroupName) {
				t.Errorf("%s may write or read rights", name)
			}
		}
	}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "mooring", Namespace: "mooring-system"}
	bound := map[string]bool{}
	for _, b := range deployed[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding") {
		bound["ClusterRole/"+b.RoleRef.Name] = true
		if !slices.Equal(b.Subjects, []rbacv1.Subject{account}) {
			t.Errorf("ClusterRoleBinding/%s is for %v", b.Name, b.Subjects)
		}
	}
	for _, b := range deployed[rbacv1.RoleBinding](t, "RoleBinding") {
		bound["Role/"+b.RoleRef.Name] = true
		if !slices.Equal(b.Subjects, []rbacv1.Subject{account}) {
			t.Errorf("RoleBinding/%s is for %v", b.Name, b.Subjects)
		}
	}
	for name := range bound {
		if _, ours := roles[name]; !ours {
			t.Errorf("%s is bound, and is not one of those that are listed here", name)
		}
	}
	for name := range roles {
		if !bound[name] {
			t.Errorf("%s is bound to nobody", name)
		}
	}
}

// TestRightsCoverIstio expects that each kind of Istio's can be kept: a new kind in Istio is a right to add here.
func TestRightsCoverIstio(t *testing.T) {
	may := map[[3]string]bool{}
	for _, r := range deployed[rbacv1.ClusterRole](t, "ClusterRole") {
		for _, rule := range r.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						may[[3]string{group, resource, verb}] = true
					}
				}
			}
		}
	}
	for _, s := range collections.Pilot.All() {
		for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
			if !may[[3]string{s.Group(), s.Plural(), verb}] {
				t.Errorf("no right to %s %s of %s", verb, s.Plural(), s.Group())
			}
		}
	}
}

// TestRightsSuffice applies an environment of the shop as the agent's ServiceAccount would, and asks the API server what else
// that may do.
func TestRightsSuffice(t *testing.T) {
	cluster := kube.Start(t)
	if _, err := cluster.Kubectl(t.Context(), "apply", "-k", filepath.Join(root(t), "deploy")); err != nil {
		t.Fatal(err)
	}
	config := cluster.ConfigFor("system:serviceaccount:mooring-system:mooring")
	agent, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	asAgent, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClient(asAgent.RESTClient()))
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	set, err := sync.NewRenderer().Render(t.Context(), os.DirFS(filepath.Join(root(t), "examples", "shop")), "overlays/prod")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range set.Objects { // the Namespace is the first
		gvk := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		opts := metav1.ApplyOptions{FieldManager: "mooring"}
		if err := applyAs(t, agent, mapping, o.Unstructured(), opts); err != nil {
			t.Errorf("apply %s: %v", o.ID(), err)
		}
	}
	t.Cleanup(func() { _, _ = cluster.Kubectl(t.Context(), "delete", "namespace", "shop-prod", "--wait=false") })
	for _, forbidden := range []authorizationv1.ResourceAttributes{
		{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
		{Verb: "patch", Group: rbacv1.GroupName, Resource: "roles", Namespace: "shop-prod"},
		{Verb: "escalate", Group: rbacv1.GroupName, Resource: "clusterroles"},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: "shop-prod"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "mooring-system"},
		{Verb: "delete", Resource: "nodes"},
		{Verb: "delete", Group: "mooring.dev", Resource: "moorings"},
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "kube-system"},
	} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &forbidden}}
		answer, err := asAgent.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed {
			t.Errorf("the agent may %s %s/%s: %s", forbidden.Verb, forbidden.Resource, forbidden.Subresource, answer.Status.Reason)
		}
	}
}

// applyAs applies an object, and takes it away again where that is the agent's right too.
func applyAs(t *testing.T, client dynamic.Interface, mapping *meta.RESTMapping, o *unstructured.Unstructured, opts metav1.ApplyOptions) error {
	t.Helper()
	var where dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		where = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	if _, err := where.Apply(t.Context(), o.GetName(), o, opts); err != nil {
		return err
	}
	if _, err := where.List(t.Context(), metav1.ListOptions{Limit: 1}); err != nil {
		return err
	}
	if o.GetKind() == "Namespace" {
		return nil
	}
	if err := where.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
