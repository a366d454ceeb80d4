package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

// history watches the validating webhook from now on. What it gives is one line for each version: the failurePolicy, and whether there is a
// certificate.
func (i *istiod) history() func() []string {
	i.Helper()
	where := i.fixture.objects.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"})
	name := "istio-validator-" + i.ns
	began, err := where.List(i.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		i.Fatal(err)
	}
	w, err := where.Watch(i.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: began.GetResourceVersion()})
	if err != nil {
		i.Fatal(err)
	}
	mark := "the-end-" + began.GetResourceVersion()
	var lines []string
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for event := range w.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || u.GetAnnotations()[mark] != "" {
				return
			}
			hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
			hook, _ := hooks[0].(map[string]any)
			bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
			lines = append(lines, fmt.Sprintf("%v %t", hook["failurePolicy"], bundle != ""))
		}
	}()
	return func() []string {
		i.Helper()
		defer w.Stop()
		i.kubectl("annotate", "validatingwebhookconfiguration", name, mark+"=now")
		select {
		case <-seen:
		case <-time.After(30 * time.Second):
			i.Fatal("the watch does not end")
		}
		return lines
	}
}

// Istiod puts its certificate into its webhook and arms it once it is called. Mooring writes the configuration once, and no pass after that writes it or is
// to be seen in it; Ignore is never written over Fail.
func TestIstiodArmsItsWebhook(t *testing.T) {
	for _, test := range []struct {
		name, policy string
		versions     []string
	}{
		{"as Mooring renders it", "", []string{"Fail false", "Fail true"}},
		{"as the charts render it", "Ignore", []string{"Ignore false", "Ignore true", "Fail true"}},
		{"as somebody wants it from the start", "Fail", []string{"Fail false", "Fail true"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.istio()
			i := newIstiod(f)
			i.cleanWebhooks()
			versions := i.history()
			i.control()
			all := i.stream(test.policy)
			f.sync(all)
			i.isArmed()
			for range 10 {
				f.settled(all)
				f.applier.Forget(f.unit.ID)
			}
			// A pass that runs is none that writes.
			f.run(f.plan(all))
			if diff := cmp.Diff(test.versions, versions()); diff != "" {
				t.Fatalf("versions of the webhook (-want +got):\n%s", diff)
			}
			// A commit that changes something else leaves both alone too.
			versions = i.history()
			changed := strings.Replace(all, "path: /validate", "path: /validate/all", 1)
			p, _ := f.sync(changed)
			f.want(p, "update ValidatingWebhookConfiguration/istio-validator-"+f.ns)
			f.settled(changed)
			if diff := cmp.Diff([]string{"Fail true"}, versions()); diff != "" {
				t.Fatalf("versions of the webhook (-want +got):\n%s", diff)
			}
			if owner := i.ownersOf("f:caBundle"); owner != "pilot-discovery" {
				t.Errorf("caBundle is %s's", owner)
			}
		})
	}
}

// ownersOf a field of the validating webhook, by its name in managedFields.
func (i *istiod) ownersOf(field string) string {
	i.Helper()
	c, err := i.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(i.Context(), "istio-validator-"+i.ns, metav1.GetOptions{})
	if err != nil {
		i.Fatal(err)
	}
	var owners []string
	for _, entry := range c.ManagedFields {
		if strings.Contains(entry.FieldsV1.GetRawString(), `"`+field+`"`) {
			owners = append(owners, entry.Manager)
		}
	}
	return strings.Join(owners, ",")
}

// An agent of before applied caBundle and failurePolicy, and owns them. The one that follows takes neither away: at no instant is there a webhook that nobody can
// call, or one that lets everything through. When istiod has its next certificate, the field is istiod's alone.
func TestBundleThatWasOnceOurs(t *testing.T) {
	f := newFixture(t)
	f.istio()
	i := newIstiod(f)
	i.cleanWebhooks()
	all := i.stream("Ignore")
	start := strings.Index(all, "apiVersion: admissionregistration.k8s.io/v1\nkind: Validating")
	bundle := f.encode(i.bundle)
	old := strings.NewReplacer("port: "+fmt.Sprint(i.port)+"}}", "port: "+fmt.Sprint(i.port)+"}, caBundle: "+bundle+"}",
		"app: istiod}", "app: istiod, "+apply.PartOfLabel+": "+f.unit.ID+"}").Replace(all[start:])
	f.kubectl("apply", "--server-side", "--field-manager="+apply.FieldManager, "-f", f.write(old))
	f.unit.Kinds = []schema.GroupKind{{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}}
	if owner := i.ownersOf("f:caBundle"); owner != apply.FieldManager {
		t.Fatalf("caBundle is %s's", owner)
	}
	versions := i.history()
	i.control()
	f.sync(all)
	i.isArmed()
	f.settled(all)
	changed := strings.Replace(all, "path: /validate", "path: /validate/all", 1)
	f.sync(changed)
	f.settled(changed)
	// The next certificate.
	i.rotate()
	f.eventually("istiod has written its next certificate", func() bool { return i.ownersOf("f:caBundle") == "pilot-discovery" })
	f.applier.Forget(f.unit.ID)
	f.settled(changed)
	f.sync(all)
	f.settled(all)
	armed := false
	for n, version := range versions() {
		armed = armed || strings.HasPrefix(version, "Fail")
		if !strings.HasSuffix(version, "true") || armed && version != "Fail true" {
			t.Errorf("version %d of the webhook: %s", n, version)
		}
	}
	if owner := i.ownersOf("f:caBundle"); owner != "pilot-discovery" {
		t.Errorf("caBundle is %s's", owner)
	}
}
