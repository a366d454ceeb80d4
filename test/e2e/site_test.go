package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/world"
)

// site is one test's place: a namespace, a repository of the same name, and the Moorings in them.
type site struct {
	t    *testing.T
	w    *world.World
	ns   string
	repo *gitserver.TestRepo
}

// files of a repository: path to content.
type files = map[string]string

// newSite makes a namespace, and a repository with the files in its first commit. In file names and contents NS stands for the namespace.
func newSite(t *testing.T, w *world.World, content files) *site {
	t.Helper()
	s := &site{t: t, w: w, ns: w.Cluster.Namespace(t)}
	s.repo = w.Git.Repo(t, s.ns+".git", s.fill(content))
	s.repo.Config("uploadpack.allowFilter", "true") // as GitHub, GitLab and Gitea have it
	return s
}

func (s *site) fill(content files) files {
	filled := files{}
	for path, text := range content {
		filled[path] = strings.ReplaceAll(text, "NS", s.ns)
	}
	return filled
}

// commit writes files, and removes those that are empty, on the branch main.
func (s *site) commit(content files) string {
	s.t.Helper()
	change := gitserver.Change{Files: s.fill(content)}
	for path, text := range content {
		if text == "" {
			delete(change.Files, path)
			change.Remove = append(change.Remove, path)
		}
	}
	return s.repo.Commit(change)
}

// head is the newest commit.
func (s *site) head() string {
	s.t.Helper()
	return s.repo.Resolve(gitserver.DefaultBranch)
}

// mooring is short for what most tests change.
type mooring = v1alpha1.Mooring

// unit is one Mooring of a test.
type unit struct {
	*site
	world.Key
}

// mooring makes a Mooring of the site's repository. Its interval is long, so that passes come when the test asks for them; change may say otherwise.
func (s *site) mooring(name string, change func(*mooring)) *unit {
	s.t.Helper()
	m := &mooring{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	m.Spec.Source = v1alpha1.Source{URL: s.repo.URL, Ref: v1alpha1.Ref{Branch: gitserver.DefaultBranch}}
	m.Spec.Interval.Duration = time.Hour
	m.Spec.Timeout.Duration = patience
	if change != nil {
		change(m)
	}
	u := &unit{site: s, Key: world.Key{Namespace: s.ns, Name: name}}
	if err := s.w.Client().Create(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(u.leave)
	return u
}

// leave tells what is known of the Mooring when the test failed. It deletes the Mooring and waits until it is gone, whatever its
// state: nothing may keep a user from deleting one, and the next test wants no stranger in its world.
func (u *unit) leave() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.t.Context()), patience)
	defer cancel()
	if u.t.Failed() {
		u.t.Log(u.w.Describe(ctx, u.Key))
	}
	if err := u.remove(ctx); err != nil && !u.t.Failed() {
		u.t.Errorf("delete the Mooring after the test: %v\n%s", err, u.w.Describe(ctx, u.Key))
	}
}

// at sets the path of a Mooring.
func at(path string) func(*mooring) {
	return func(m *mooring) { m.Spec.Path = path }
}

// every sets the interval of a Mooring, for tests of what happens by itself.
func every(d time.Duration) func(*mooring) {
	return func(m *mooring) { m.Spec.Interval.Duration = d }
}

// until waits for a state of the Mooring.
func (u *unit) until(what string, right func(*mooring) error) *mooring {
	u.t.Helper()
	m, err := u.w.Until(within(u.t, patience), u.Key, what, right)
	if err != nil {
		u.t.Fatal(err)
	}
	return m
}

// inForce waits until a commit is applied.
func (u *unit) inForce(commit string) *mooring {
	u.t.Helper()
	return u.until("commit "+commit+" is in force", world.InForce(commit))
}

// sync asks for a pass and gives what came of it.
func (u *unit) sync() *mooring {
	u.t.Helper()
	m, err := u.w.Sync(within(u.t, patience), u.Key)
	if err != nil {
		u.t.Fatal(err)
	}
	return m
}

// edit changes the Mooring as a user does.
func (u *unit) edit(change func(*mooring)) {
	u.t.Helper()
	m, err := u.w.Mooring(u.t.Context(), u.Key)
	if err != nil {
		u.t.Fatal(err)
	}
	before := m.DeepCopy()
	change(m)
	if err := u.w.Client().Patch(u.t.Context(), m, client.MergeFrom(before)); err != nil {
		u.t.Fatal(err)
	}
}

// delete deletes the Mooring and waits until it is gone.
func (u *unit) delete() {
	u.t.Helper()
	if err := u.remove(within(u.t, patience)); err != nil {
		u.t.Fatal(err)
	}
}

func (u *unit) remove(ctx context.Context) error {
	m := &mooring{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.Name}}
	if err := u.w.Client().Delete(ctx, m); err != nil {
		return client.IgnoreNotFound(err)
	}
	return poll.Until(ctx, "the Mooring is gone", func() error {
		switch err := u.w.Client().Get(ctx, u.Key, m); {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is there, with the finalizers %v; Ready is %v", m.Finalizers, world.Ready(m))
	})
}

// events of the Mooring.
func (u *unit) events() []world.Event {
	u.t.Helper()
	events, err := u.w.Events(u.t.Context(), u.Key)
	if err != nil {
		u.t.Fatal(err)
	}
	return events
}

// event waits for one Event with this reason whose note holds all the parts, and fails when there is a second one.
func (u *unit) event(reason string, parts ...string) world.Event {
	u.t.Helper()
	var found []world.Event
	eventually(u.t, fmt.Sprintf("there is an Event %s with %q", reason, parts), func() error {
		found = slices.DeleteFunc(u.events(), func(e world.Event) bool { return e.Reason != reason || lacks(e.Note, parts) != "" })
		if len(found) == 0 {
			return fmt.Errorf("the Events are %v", u.events())
		}
		return nil
	})
	if len(found) != 1 || found[0].Count != 1 {
		u.t.Errorf("Events %s with %q: got %v, want it once", reason, parts, found)
	}
	return found[0]
}

// part is the ApplySet id of the Mooring.
func (u *unit) part() string {
	return apply.ApplySetID(u.Name, u.Namespace, v1alpha1.Kind, v1alpha1.GroupVersion.Group)
}

// series are the labels of the Mooring's metrics, and more.
func (u *unit) series(more ...string) []string {
	return append([]string{fmt.Sprintf("namespace=%q", u.Namespace), fmt.Sprintf("name=%q", u.Name)}, more...)
}

// Kinds that the tests use.
var (
	configMaps      = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	services        = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	virtualServices = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}
)

// list gives the objects of a kind in the site's namespace by name. What Kubernetes itself puts into every namespace is left out.
func (s *site) list(gvk schema.GroupVersionKind) map[string]*unstructured.Unstructured {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := s.w.Client().List(s.t.Context(), list, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		if name := list.Items[i].GetName(); name != "kube-root-ca.crt" && name != "istio-ca-root-cert" {
			found[name] = &list.Items[i]
		}
	}
	return found
}

// values of the key "value" of the ConfigMaps of the namespace, by name.
func (s *site) values() map[string]string {
	s.t.Helper()
	values := map[string]string{}
	for name, o := range s.list(configMaps) {
		values[name], _, _ = unstructured.NestedString(o.Object, "data", "value")
	}
	return values
}

// want compares the ConfigMaps of the namespace with what they should be: "name=value name=value".
func (s *site) want(listed string) {
	s.t.Helper()
	if diff := cmp.Diff(parsePairs(listed), s.values()); diff != "" {
		s.t.Errorf("ConfigMaps in the cluster (-want +got):\n%s", diff)
	}
}

// becomes waits until the ConfigMaps of the namespace are so.
func (s *site) becomes(listed string) {
	s.t.Helper()
	eventually(s.t, "the ConfigMaps are "+listed, func() error {
		if diff := cmp.Diff(parsePairs(listed), s.values()); diff != "" {
			return fmt.Errorf("the ConfigMaps are (-want +got):\n%s", diff)
		}
		return nil
	})
}

func parsePairs(listed string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.FieldsSeq(listed) {
		name, value, _ := strings.Cut(pair, "=")
		pairs[name] = value
	}
	return pairs
}

// tamper changes a ConfigMap as somebody does who forgot that it is kept in Git.
func (s *site) tamper(name, value string) {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"value":%q}}`, value))
	if err := s.w.Client().Patch(s.t.Context(), cm, patch, client.FieldOwner("somebody")); err != nil {
		s.t.Fatal(err)
	}
}

// versions are the resourceVersions of all objects of the namespace that the tests use: the same as long as nobody writes.
func (s *site) versions() map[string]string {
	s.t.Helper()
	versions := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{configMaps, services, virtualServices} {
		for name, o := range s.list(kind) {
			versions[kind.Kind+"/"+name] = o.GetResourceVersion()
		}
	}
	return versions
}

// untouched fails the test when an object was written since.
func (s *site) untouched(since map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(since, s.versions()); diff != "" {
		s.t.Errorf("the cluster was touched (-before +after):\n%s", diff)
	}
}

// configMap writes one with one value.
func configMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: NS}\ndata: {value: %q}\n", name, value)
}

// virtualService routes all of a host to one Service.
func virtualService(name string) string {
	return fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s, namespace: NS}
spec:
  hosts: [%[1]s.NS.svc.cluster.local]
  http:
  - route:
    - destination: {host: %[1]s.NS.svc.cluster.local}
`, name)
}

func service(name string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: NS}
spec:
  ports: [{name: http, port: 80}]
`, name)
}

// some writes ConfigMaps under their names: "a=1 b=2" becomes a.yaml and b.yaml.
func some(listed string) files {
	content := files{}
	for name, value := range parsePairs(listed) {
		content[name+".yaml"] = configMap(name, value)
	}
	return content
}

// under moves files into a folder.
func under(folder string, content files) files {
	moved := files{}
	for path, text := range content {
		moved[folder+"/"+path] = text
	}
	return moved
}

// all files of several lots.
func all(lots ...files) files {
	content := files{}
	for _, lot := range lots {
		maps.Copy(content, lot)
	}
	return content
}

// eventually polls until ask has no error.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	if err := poll.Until(within(t, patience), what, ask); err != nil {
		t.Fatal(err)
	}
}

// lacks is the first part that is not in s, or empty.
func lacks(s string, parts []string) string {
	for _, part := range parts {
		if !strings.Contains(s, part) {
			return part
		}
	}
	return ""
}

// ready fails the test when the Ready condition is not so, or its message lacks a part.
func ready(t *testing.T, m *mooring, status metav1.ConditionStatus, reason string, parts ...string) {
	t.Helper()
	got := world.Ready(m)
	if got.Status != status || got.Reason != reason {
		t.Errorf("Ready is %s %s, want %s %s; its message: %s", got.Status, got.Reason, status, reason, got.Message)
	}
	if missing := lacks(got.Message, parts); missing != "" {
		t.Errorf("the message of %s lacks %q: %s", reason, missing, got.Message)
	}
}
