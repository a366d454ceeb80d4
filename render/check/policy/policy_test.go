package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render/check/policy"
)

// spec of a policy, below its head.
func document(spec string) []byte {
	return []byte("apiVersion: mooring.dev/v1alpha1\nkind: CheckPolicy\nmetadata: {name: test}\nspec:\n" + spec)
}

func one(t testing.TB, spec string) *policy.Policy {
	t.Helper()
	all, err := policy.Parse("house.yaml", document(spec))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d policies, %v", len(all), err)
	}
	return all[0]
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCheck(t *testing.T) {
	filter := object(t, "{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: a, namespace: shop}, spec: {priority: 3}}")
	owned := object(t, "{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: a, namespace: shop, labels: {owner: edge}}}")
	prod := map[string]any{"name": "prod", "namespace": "mesh", "labels": map[string]any{"stage": "prod"}}
	for name, test := range map[string]struct {
		spec                 string
		object, old, mooring map[string]any
		want                 []policy.Violation
		wantErr              string
	}{
		"holds":               {spec: "  {code: A1, validations: [{expression: object.metadata.name == 'a'}]}", object: filter},
		"does not":            {spec: "  {code: A1, validations: [{expression: object.metadata.name == 'b', message: refused, mend: rename it, field: metadata.name}]}", object: filter, want: []policy.Violation{{Field: "metadata.name", Message: "refused", Mend: "rename it"}}},
		"says the expression": {spec: "  {code: A1, validations: [{expression: object.metadata.name == 'b'}]}", object: filter, want: []policy.Violation{{Message: "does not hold: object.metadata.name == 'b'"}}},
		"words of CEL": {
			spec:   "  {code: A1, validations: [{expression: 'false', messageExpression: \"'priority ' + string(object.spec.priority)\", message: other}]}",
			object: filter, want: []policy.Violation{{Message: "priority 3"}},
		},
		"words of CEL that fail": {
			spec:   "  {code: A1, validations: [{expression: 'false', messageExpression: object.spec.nothing, message: other}]}",
			object: filter, want: []policy.Violation{{Message: "other"}},
		},
		"the condition is for another": {spec: "  {code: A1, matchConditions: [{name: prod, expression: mooring.name == 'prod'}], validations: [{expression: 'false'}]}", object: filter, mooring: map[string]any{"name": "dev"}},
		"the condition holds":          {spec: "  {code: A1, matchConditions: [{name: prod, expression: mooring.labels.stage == 'prod'}], validations: [{expression: 'false', message: refused}]}", object: filter, mooring: prod, want: []policy.Violation{{Message: "refused"}}},
		"variables, each with those before it": {
			spec:   "  {code: A1, variables: [{name: owner, expression: \"object.metadata.?labels['owner'].orValue('')\"}, {name: owned, expression: variables.owner != ''}], validations: [{expression: variables.owned, message: refused}]}",
			object: owned,
		},
		"without the label":  {spec: "  {code: A1, validations: [{expression: \"object.metadata.?labels['owner'].hasValue()\", message: refused}]}", object: filter, want: []policy.Violation{{Message: "refused"}}},
		"old is null":        {spec: "  {code: A1, validations: [{expression: old == null}]}", object: filter},
		"old is compared":    {spec: "  {code: A1, validations: [{expression: old == null || old.spec.priority <= object.spec.priority, message: lower}]}", object: filter, old: object(t, "{kind: EnvoyFilter, spec: {priority: 9}}"), want: []policy.Violation{{Message: "lower"}}},
		"the API server's":   {spec: "  {code: A1, validations: [{expression: \"duration('3s') < duration('1m') && quantity('1Gi').isGreaterThan(quantity('1Mi')) && [1,2].sum() == 3\"}]}", object: filter},
		"several":            {spec: "  {code: A1, validations: [{expression: 'false', message: a}, {expression: 'true'}, {expression: 'false', message: b}]}", object: filter, want: []policy.Violation{{Message: "a"}, {Message: "b"}}},
		"a field not there":  {spec: "  {code: A1, validations: [{expression: object.spec.nothing == 1}]}", object: filter, wantErr: "spec.validations[0].expression: no such key: nothing"},
		"one of several not": {spec: "  {code: A1, validations: [{expression: object.spec.nothing == 1}, {expression: 'false', message: b}]}", object: filter, want: []policy.Violation{{Message: "b"}}, wantErr: "no such key"},
		"no mooring":         {spec: "  {code: A1, validations: [{expression: mooring.name == ''}]}", object: filter, wantErr: "no such key: name"},
		"neither true nor":   {spec: "  {code: A1, validations: [{expression: object.spec.priority}]}", object: filter, wantErr: "want true or false"},
		"a variable fails":   {spec: "  {code: A1, variables: [{name: x, expression: object.spec.nothing}], validations: [{expression: variables.x == 1}]}", object: filter, wantErr: "spec.variables[0].expression"},
		"costs too much": {
			spec:   "  {code: A1, validations: [{expression: \"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))\"}]}",
			object: filter, wantErr: "cost limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := one(t, test.spec).Check(t.Context(), test.object, test.old, test.mooring)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	p := one(t, "  {code: A1, match: {groups: [networking.istio.io], kinds: [Virtual*, Gateway], namespaces: ['shop-*']}, validations: [{expression: 'true'}]}")
	for _, test := range []struct {
		group, kind, namespace string
		want                   bool
	}{
		{"networking.istio.io", "VirtualService", "shop-prod", true},
		{"networking.istio.io", "Gateway", "shop-", true},
		{"gateway.networking.k8s.io", "Gateway", "shop-prod", false},
		{"networking.istio.io", "Sidecar", "shop-prod", false},
		{"networking.istio.io", "Gateway", "shop", false},
		{"networking.istio.io", "Gateway", "", false},
	} {
		if got := p.Matches(test.group, test.kind, test.namespace, "any"); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	if !one(t, "  {code: A1, validations: [{expression: 'true'}]}").Matches("", "ConfigMap", "", "") {
		t.Error("a policy without a match is for all")
	}
}

// The message says where the mistake is: it is read by somebody whose commit does not go through.
func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not a policy":         {"apiVersion: v1\nkind: ConfigMap\n", `house.yaml: document 1: "ConfigMap" of "v1" is no policy`},
		"an unknown field":     {string(document("  {code: A1, validatons: []}")), `unknown field "validatons"`},
		"no code":              {string(document("  {validations: [{expression: 'true'}]}")), `spec.code is ""`},
		"a code of ours":       {string(document("  {code: MOOR999, validations: [{expression: 'true'}]}")), "prefixes of Mooring's and Istio's"},
		"a code in lower case": {string(document("  {code: acme1, validations: [{expression: 'true'}]}")), "such as ACME001"},
		"a level":              {string(document("  {code: A1, level: error, validations: [{expression: 'true'}]}")), "write Error, Warning or Info"},
		"no validations":       {string(document("  {code: A1}")), "would demand nothing"},
		"no expression":        {string(document("  {code: A1, validations: [{message: a}]}")), "spec.validations[0].expression is empty"},
		"syntax":               {string(document("  {code: A1, validations: [{expression: 'object.'}]}")), "spec.validations[0].expression does not compile: ERROR: <input>:1:8"},
		"an unknown name":      {string(document("  {code: A1, validations: [{expression: obj.kind == ''}]}")), "undeclared reference to 'obj'"},
		"variables without":    {string(document("  {code: A1, validations: [{expression: variables.a}]}")), "undeclared reference to 'variables'"},
		"a text":               {string(document("  {code: A1, validations: [{expression: \"'a'\"}]}")), "gives a string, want a bool"},
		"a message":            {string(document("  {code: A1, validations: [{expression: 'true', messageExpression: '1'}]}")), "gives a int, want a string"},
		"a pattern":            {string(document("  {code: A1, match: {kinds: ['[']}, validations: [{expression: 'true'}]}")), `spec.match.kinds[0] is "["`},
		"a variable's name":    {string(document("  {code: A1, variables: [{name: a-b, expression: '1'}], validations: [{expression: 'true'}]}")), `spec.variables[0].name is "a-b"`},
		"two of a name":        {string(document("  {code: A1, variables: [{name: a, expression: '1'}, {name: a, expression: '2'}], validations: [{expression: 'true'}]}")), "as that of an earlier one"},
		"the second document":  {string(document("  {code: A1, validations: [{expression: 'true'}]}")) + "\n---\nkind: x\n", "document 2"},
		"no YAML":              {"a: [", "document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := policy.Parse("house.yaml", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "house.yaml: ") {
				t.Errorf("got %d policies and %v, want an error with %q", len(all), err, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	text := "# of the platform team\n---\n" + string(document("  {code: A1, validations: [{expression: 'true'}]}")) + "\n---\n\n---\n" +
		string(document("  {code: B-2, level: Info, validations: [{expression: 'true'}]}"))
	all, err := policy.Parse("house.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprint(p.Name, " ", p.File, " ", p.Code, " ", p.Level))
	}
	if diff := cmp.Diff([]string{"test house.yaml A1 Error", "test house.yaml B-2 Info"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsStaySecret(t *testing.T) {
	p := one(t, "  {code: A1, validations: [{expression: 'false', messageExpression: \"object.data['tls.key'] + object.stringData.a + string('tls.key' in object.data) + old.data['tls.key']\"}]}")
	secret := object(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {tls.key: c2VjcmV0}, stringData: {a: hunter2}}")
	got, err := p.Check(t.Context(), secret, secret, nil)
	if err != nil || len(got) != 1 || got[0].Message != "<redacted><redacted>true<redacted>" {
		t.Errorf("%+v, %v", got, err)
	}
	if secret["data"].(map[string]any)["tls.key"] != "c2VjcmV0" {
		t.Error("the object itself was changed")
	}
}

func TestCheckStops(t *testing.T) {
	p := one(t, "  {code: A1, validations: [{expression: \"object.items.all(a, object.items.all(b, a + b >= 0))\"}]}")
	items := make([]any, 300)
	for i := range items {
		items[i] = int64(i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Check(ctx, map[string]any{"items": items}, nil, nil); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	var policies []*policy.Policy
	for i := range 20 {
		kind := []string{"EnvoyFilter", "VirtualService", "Gateway", "ServiceEntry"}[i%4]
		policies = append(policies, one(b, "  {code: A1, match: {kinds: ["+kind+"]}, validations: [{expression: \"object.spec.hosts.all(h, h != '*') && object.metadata.?labels['owner'].orValue('x') != ''\"}]}"))
	}
	route := object(b, "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: a}, spec: {hosts: [a, b]}}")
	for b.Loop() {
		for range 5000 {
			for _, p := range policies {
				if p.Matches("networking.istio.io", "VirtualService", "shop", "a") {
					if v, err := p.Check(b.Context(), route, nil, nil); err != nil || v != nil {
						b.Fatal(v, err)
					}
				}
			}
		}
	}
}
