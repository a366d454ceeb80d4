package apply_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/apply"
)

const validatingWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: istio-validator-$NS}
webhooks:
- name: rev.validation.istio.io
  clientConfig: {service: {name: istiod, namespace: $NS, path: /validate}, caBundle: BUNDLE}
  rules: [{operations: [CREATE, UPDATE], apiGroups: [nothing.test.mooring.dev], apiVersions: ["*"], resources: ["*"]}]
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
`

// The caBundle of a webhook that nobody else looks after is the user's, and is applied.
func TestCABundleOfAnotherWebhook(t *testing.T) {
	f := newFixture(t)
	name := "other-" + f.ns
	certificate := f.certificate()
	all := strings.NewReplacer("BUNDLE", certificate, "istio-validator-", "other-", "name: istiod", "name: other", "rev.validation.istio.io", "a.test.mooring.dev").Replace(validatingWebhook)
	t.Cleanup(func() { _, _ = f.cluster.Kubectl(uncancelled(t), "delete", "validatingwebhookconfiguration", name) })
	f.sync(all)
	if got := f.kubectl("get", "validatingwebhookconfiguration", name, "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}"); got != certificate {
		t.Fatalf("caBundle is %q", got)
	}
	f.settled(all)
	// Whether it fails open or closed is the user's too, as long as nobody else decides it.
	closed := strings.Replace(all, "failurePolicy: Ignore", "failurePolicy: Fail", 1)
	for _, stream := range []string{closed, all} {
		p, _ := f.sync(stream)
		f.want(p, "update ValidatingWebhookConfiguration/"+name)
		f.settled(stream)
	}
	f.kubectl("patch", "validatingwebhookconfiguration", name, "--type=json", "--field-manager=some-operator", "-p",
		`[{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Fail"}]`)
	f.settled(all)
}

// A webhook whose server could not be applied would refuse everything: it waits.
func TestWebhookWaitsForItsServer(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap)
	all := strings.Replace(oneMap, "one", "changed", 1) + "---\n" + strings.Replace(validatingWebhook, ", caBundle: BUNDLE", "", 1)
	p := f.plan(all)
	f.denyUpdates("a")
	r, err := f.applier.Run(t.Context(), p)
	if err == nil {
		t.Fatal("the update was not denied")
	}
	if missed := r.NotReached(); len(missed) != 1 || missed[0].ID.Kind != "ValidatingWebhookConfiguration" {
		t.Fatalf("not reached: %+v", missed)
	}
	if last := p.Waves[len(p.Waves)-1]; last.Name != apply.WaveControlPlane {
		t.Fatalf("the last wave is %s", last.Name)
	}
	f.allow()
	t.Cleanup(func() {
		_, _ = f.cluster.Kubectl(uncancelled(t), "delete", "validatingwebhookconfiguration", "istio-validator-"+f.ns)
	})
	f.sync(all)
	f.settled(all)
}

// certificate is the API server's own, encoded as a caBundle.
func (f *fixture) certificate() string {
	f.Helper()
	ca := f.cluster.Config().CAData
	if len(ca) == 0 {
		f.Fatal("the cluster has no certificate")
	}
	return f.encode(ca)
}

func (f *fixture) encode(bundle []byte) string { return base64.StdEncoding.EncodeToString(bundle) }
