package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/policy"
)

const owned = `apiVersion: mooring.dev/v1alpha1
kind: CheckPolicy
metadata: {name: owned}
spec:
  code: ACME001
  match: {kinds: [DestinationRule]}
  matchConditions: [{name: prod, expression: mooring.name == 'prod'}]
  validations:
  - {expression: "object.metadata.?labels['owner'].hasValue()", message: has no owner, field: metadata, mend: label it with owner}
  - {expression: old == null || old.spec.host == object.spec.host, message: the host of a rule never changes, field: spec.host}
`

const ownerless = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: web
  namespace: shop
spec:
  host: web.shop.svc.cluster.local
`

func TestPoliciesOfTheHouse(t *testing.T) {
	policies, err := policy.Parse("policies/owned.yaml", []byte(owned))
	if err != nil {
		t.Fatal(err)
	}
	request := func(name string) check.Request {
		return check.Request{Set: setOf(t, ownerless), Policies: policies, Mooring: map[string]any{"name": name}}
	}
	codes := func(r *check.Report) (got []string) {
		for _, f := range withCode(r, "ACME001") {
			text := f.String()
			if f.Known {
				text += " [known]"
			}
			if f.Suppressed != nil {
				text += " [suppressed]"
			}
			got = append(got, text)
		}
		return got
	}
	const finding = "web.yaml:1: error ACME001 DestinationRule/shop/web: metadata: has no owner; label it with owner"

	if got := run(t, request("dev")); len(codes(got)) != 0 {
		t.Errorf("a policy for prod speaks in dev: %v", codes(got))
	}
	if diff := cmp.Diff([]string{finding}, codes(run(t, request("prod")))); diff != "" {
		t.Errorf("prod (-want +got):\n%s", diff)
	}
	q := request("prod")
	q.Cluster = clusterOf(t, ownerless)
	if diff := cmp.Diff([]string{finding + " [known]"}, codes(run(t, q))); diff != "" {
		t.Errorf("what lives has no owner either (-want +got):\n%s", diff)
	}
	q.Cluster.Objects[0].Object["spec"] = map[string]any{"host": "other.shop.svc.cluster.local"}
	want := []string{
		finding + " [known]",
		"web.yaml:1: error ACME001 DestinationRule/shop/web: spec.host: the host of a rule never changes; see the policy owned in policies/owned.yaml",
	}
	if diff := cmp.Diff(want, codes(run(t, q))); diff != "" {
		t.Errorf("another host lives (-want +got):\n%s", diff)
	}
	q = request("prod")
	q.Ignore = []string{"ACME001"}
	if diff := cmp.Diff([]string{finding + " [suppressed]"}, codes(run(t, q))); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	unknown := withCode(run(t, check.Request{Set: setOf(t, ownerless), Policies: policies}), "MOOR019")
	if len(unknown) != 1 || !unknown[0].Blocks(check.Error) {
		t.Errorf("a policy that cannot be evaluated must block: %v", unknown)
	}
}
