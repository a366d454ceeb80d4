package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

// hold makes the test binary start a cluster, say where, and wait to be killed.
const hold = "MOORING_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(hold) != "" {
		os.Exit(holdCluster())
	}
	os.Exit(kube.Run(m))
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually polls until done is true, for half a minute at most.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	poll.AwaitTrue(t, 30*time.Second, what, done)
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"port": "15012"}}
}

func TestStartServesIstioAndMooring(t *testing.T) {
	c := kube.Start(t)
	t.Log("cluster in", filepath.Dir(c.Kubeconfig()))
	if again := kube.Start(t); again != c {
		t.Error("a second Start gave another cluster")
	}
	dyn, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := dyn.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var established []string
	for _, crd := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		if slices.ContainsFunc(conditions, func(c any) bool {
			condition := c.(map[string]any)
			return condition["type"] == "Established" && condition["status"] == "True"
		}) {
			established = append(established, crd.GetName())
		}
	}
	for _, name := range []string{"virtualservices.networking.istio.io", "telemetries.telemetry.istio.io", "moorings.mooring.dev"} {
		if !slices.Contains(established, name) {
			t.Errorf("CRD %s is not Established; these are: %v", name, established)
		}
	}
	version, err := c.Kubectl(t.Context(), "version", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(version, `"gitVersion": "v1.`); n != 2 {
		t.Errorf("kubectl and the API server do not both name a version of Kubernetes:\n%s", version)
	}
}

func TestControllersCleanUp(t *testing.T) {
	c := kube.Start(t)
	api := client(t, c.Config()).CoreV1()
	ns := c.Namespace(t)
	owner, err := api.ConfigMaps(ns).Create(t.Context(), configMap("owner"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := configMap("owned")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if _, err := api.ConfigMaps(ns).Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := api.ConfigMaps(ns).Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned ConfigMap is collected", func() bool {
		_, err := api.ConfigMaps(ns).Get(t.Context(), "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if err := api.Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted namespace is gone", func() bool {
		_, err := api.Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestNamespaceGoesWithItsTest(t *testing.T) {
	c := kube.Start(t)
	var ns string
	t.Run("a test/with odd CHARACTERS and a name that is much longer than a namespace's may be", func(t *testing.T) {
		ns = c.Namespace(t)
	})
	eventually(t, "the namespace is gone after its test", func() bool {
		_, err := client(t, c.Config()).CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestRestartKeepsPortAndData(t *testing.T) {
	c := kube.Start(t)
	ns := c.Namespace(t)
	maps := client(t, c.Config()).CoreV1().ConfigMaps(ns)
	made, err := maps.Create(t.Context(), configMap("kept"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := c.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range watch.ResultChan() { // ends because the watch was cut off, which shows that there was a restart
	}
	got, err := maps.Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the client of before the restart: %v", err)
	}
	if got.UID != made.UID {
		t.Errorf("the ConfigMap's UID is %s, was %s", got.UID, made.UID)
	}
}

func TestRequestCounts(t *testing.T) {
	c := kube.Start(t)
	ns := c.Namespace(t)
	maps := client(t, c.Config()).CoreV1().ConfigMaps(ns)
	count := func(do func() error) kube.Requests {
		t.Helper()
		before := c.Requests(t)
		if err := do(); err != nil {
			t.Fatal(err)
		}
		// An answer is counted just after it was sent, so the next one may be a little early.
		var moved kube.Requests
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = poll.Until(ctx, "it is counted", func() error { // what is not counted is compared by who asked
			moved = c.Requests(t).Since(before).Only(func(r kube.Request) bool { return r.Group == "" && r.Resource == "configmaps" })
			if moved.Total() == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		return moved
	}
	patch := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"counted"},"data":{"a":"b"}}`)
	apply := func(dryRun ...string) error {
		_, err := maps.Patch(t.Context(), "counted", types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "test", DryRun: dryRun})
		return err
	}
	for _, test := range []struct {
		name  string
		do    func() error
		want  kube.Request
		write bool
	}{
		{"create", func() error {
			_, err := maps.Create(t.Context(), configMap("made"), metav1.CreateOptions{})
			return err
		}, kube.Request{Verb: "POST"}, true},
		{"get", func() error { _, err := maps.Get(t.Context(), "made", metav1.GetOptions{}); return err }, kube.Request{Verb: "GET"}, false},
		{"list", func() error { _, err := maps.List(t.Context(), metav1.ListOptions{}); return err }, kube.Request{Verb: "LIST"}, false},
		{"dry run", func() error { return apply(metav1.DryRunAll) }, kube.Request{Verb: "APPLY", DryRun: true}, false},
		{"apply", func() error { return apply() }, kube.Request{Verb: "APPLY"}, true},
		{"delete", func() error { return maps.Delete(t.Context(), "made", metav1.DeleteOptions{}) }, kube.Request{Verb: "DELETE"}, true},
	} {
		test.want.Resource = "configmaps"
		got := count(test.do)
		if len(got) != 1 || got[test.want] != 1 {
			t.Errorf("%s: counted\n%s\nwant 1 %s alone", test.name, got, test.want)
		}
		if test.want.Write() != test.write {
			t.Errorf("%s: Write is %t", test.want, !test.write)
		}
	}
	if got := count(func() error { return nil }); got.Total() != 0 {
		t.Errorf("counted while nothing happened:\n%s", got)
	}
}

func TestConfigForHasTheUsersRightsAlone(t *testing.T) {
	c := kube.Start(t)
	ns := c.Namespace(t)
	admin := client(t, c.Config())
	tenant := client(t, c.ConfigFor("system:serviceaccount:"+ns+":deployer")).CoreV1().ConfigMaps(ns)
	if _, err := tenant.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("list without a role: %v, want forbidden", err)
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	if _, err := admin.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The group that every account of the namespace is in, so that the API server must have added it.
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "read"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + ns}},
	}
	if _, err := admin.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role's list is allowed", func() bool {
		_, err := tenant.List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	if _, err := tenant.Create(t.Context(), configMap("no"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create with a role that lists: %v, want forbidden", err)
	}
}

func TestKubectlErrorHoldsItsWords(t *testing.T) {
	c := kube.Start(t)
	_, err := c.Kubectl(t.Context(), "get", "configmap", "absent")
	if err == nil || !strings.Contains(err.Error(), `configmaps "absent" not found`) {
		t.Errorf("the error is %v", err)
	}
}

func TestLaunchThatFailsShowsTheLogs(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\n[ \"$1\" = etcd ] || exec sleep 60\necho \"$1 says: the disk is full\"\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := kube.Launch(t.Context(), kube.Options{Binary: broken, Dir: dir})
	if err == nil {
		t.Fatal("a broken binary started")
	}
	for _, want := range []string{"ended: exit status 3", "etcd says: the disk is full", "kube-apiserver.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not hold %q:\n%v", want, err)
		}
	}
}

// A second Build of the same thing waits for the first and takes what it made.
func TestBuildWaitsForAnother(t *testing.T) {
	cached, err := kube.Build(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Setenv("MOORING_CACHE", cache)
	target := filepath.Join(cache, filepath.Base(cached))
	lock, err := os.Create(target + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		path string
		err  error
	}
	built := make(chan answer)
	var progress bytes.Buffer
	go func() {
		path, err := kube.Build(context.WithoutCancel(t.Context()), &progress)
		built <- answer{path, err}
	}()
	select {
	case got := <-built:
		t.Fatalf("Build did not wait: %+v", got)
	case <-time.After(time.Second): // long enough for it to come to the lock
	}
	if err := os.WriteFile(target, []byte("made by the other"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-built; got.err != nil || got.path != target {
		t.Errorf("Build gave %q, %v, want what the other made", got.path, got.err)
	}
	if progress.Len() != 0 {
		t.Errorf("Build built although the other had:\n%s", &progress)
	}
}

// holdCluster is the test binary in its part as a process that gets killed.
func holdCluster() int {
	ctx := context.Background()
	binary, err := kube.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := kube.Launch(ctx, kube.Options{Binary: binary, Dir: os.Getenv(hold)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
