package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// aSpec has each thing that a schema can say about a field once, so that the model may change without this test.
const aSpec = `
description: Spec is what is wanted.
properties:
  rule:
    description: |-
      Rule says how
      callers behave. Second sentence, e.g. with a point.

      Another paragraph. Becomes DestinationRule spec.trafficPolicy.
    type: object
    required: [mode]
    properties:
      mode: {type: string, enum: [A, B], default: A, description: Mode of it. Becomes spec.trafficPolicy.mode.}
      count: {type: integer, minimum: 1, maximum: 9, description: "Count of it. Becomes DestinationRule spec.trafficPolicy.outlierDetection.count."}
      inner: {type: object, properties: {deep: {type: string, description: Deep. Becomes DestinationRule outlierDetection.deep.}}, description: Becomes trafficPolicy.outlierDetection.}
      most: {type: number, maximum: 0.5}
      time: {type: string, pattern: "^[0-9]+s$", minLength: 2, description: A time that becomes nothing that has a name.}
      patch: {type: object, x-kubernetes-preserve-unknown-fields: true}
      either: {x-kubernetes-int-or-string: true}
    x-kubernetes-validations:
    - {rule: "true", message: mode and count do not go together}
    - {rule: self.mode == 'A'}
  routes:
    description: Routes are tried in their order. Each becomes an item of VirtualService spec.http and, at times, a ServiceEntry.
    type: array
    minItems: 1
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      required: [name]
      properties:
        name: {type: string}
        headers:
          type: object
          additionalProperties: {type: object, properties: {exact: {type: string}}}
  labels: {type: object, maxProperties: 3, additionalProperties: {type: string}}
`

func aRoot(t *testing.T) *appField {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(aSpec), &schema); err != nil {
		t.Fatal(err)
	}
	return newAppField("", nil, &schema, true)
}

func TestFieldsAreFound(t *testing.T) {
	root := aRoot(t)
	for path, want := range map[string]string{
		"rule":                              "rule",
		"spec.rule.mode":                    "rule.mode",
		"AppConfiguration.spec.rule.mode":   "rule.mode",
		"appconf.rule.mode":                 "rule.mode",
		"routes.name":                       "routes.name",
		"routes[3].name":                    "routes.name",
		"routes[].name":                     "routes.name",
		"routes.0.headers.x-user.exact":     "routes.headers.exact",
		"routes.headers[x-user].exact":      "routes.headers.exact",
		"routes.headers.exact":              "routes.headers.exact",
		"routes.headers.x-user":             "routes.headers",
		"rule.patch.trafficPolicy.tls[0].x": "rule.patch",
		"labels.app":                        "labels",
	} {
		f, err := root.find(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if f.path() != want {
			t.Errorf("%s is found to be %s, want %s", path, f.path(), want)
		}
	}
	for path, hint := range map[string]string{
		"rul":                    "did you mean rule?",
		"rule.cuont":             "did you mean rule.count?",
		"exact":                  "did you mean routes.headers.exact?",
		"exat":                   "did you mean routes.headers.exact?",
		"routes.headers.exat":    "did you mean routes.headers.exact?",
		"rule.mode.zzzzzz":       "rule.mode is a string and has no fields",
		"rule.completelyUnknown": "rule has count, either, inner, mode, most, patch, time",
		"spec":                   "an AppConfiguration has labels, routes, rule",
	} {
		_, err := root.find(path)
		if err == nil || hintOf(err) != hint {
			t.Errorf("%s: %v with the hint %q, want the hint %q", path, err, hintOf(err), hint)
		}
	}
}

func TestFieldsAreExplained(t *testing.T) {
	root := aRoot(t)
	for path, want := range map[string]string{
		"rule": `FIELD     spec.rule
TYPE      mapping
REQUIRED  no
RULE      mode and count do not go together
RULE      self.mode == 'A'
BECOMES   DestinationRule spec.trafficPolicy

Rule says how callers behave. Second sentence, e.g. with a point.

Another paragraph.

FIELDS
  count    integer             Count of it
  either   integer or string
  inner    mapping             Becomes trafficPolicy.outlierDetection
    deep   string              Deep
  mode     string, required    Mode of it
  most     number
  patch    any mapping
  time     string              A time that becomes nothing that has a name
`,
		"rule.mode": `FIELD     spec.rule.mode
TYPE      string
REQUIRED  yes, in rule
ALLOWED   A, B
DEFAULT   A
BECOMES   spec.trafficPolicy.mode

Mode of it.
`,
		"rule.most": `FIELD     spec.rule.most
TYPE      number
REQUIRED  no
RANGE     at most 0.5
BECOMES   a part of what rule becomes: DestinationRule spec.trafficPolicy
`,
		"rule.count": `FIELD     spec.rule.count
TYPE      integer
REQUIRED  no
RANGE     1 to 9
BECOMES   DestinationRule spec.trafficPolicy.outlierDetection.count

Count of it.
`,
		"rule.time": `FIELD     spec.rule.time
TYPE      string
REQUIRED  no
PATTERN   ^[0-9]+s$
LENGTH    2 or more
BECOMES   a part of what rule becomes: DestinationRule spec.trafficPolicy

A time that becomes nothing that has a name.
`,
		"routes": `FIELD     spec.routes
TYPE      list of mappings
REQUIRED  no
ITEMS     1 or more
KEY       name: no two items have the same, and an overlay changes one of them by it
BECOMES   each an item of VirtualService spec.http and, at times, a ServiceEntry

Routes are tried in their order.

FIELDS
  headers   map of mappings
    exact   string
  name      string, required
`,
		"labels": `FIELD     spec.labels
TYPE      map of strings
REQUIRED  no
ENTRIES   at most 3
`,
	} {
		page := &explanation{}
		if err := page.field(root, path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if diff := cmp.Diff(want, page.text.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestFieldsAreFoundByWhatTheyBecome(t *testing.T) {
	root := aRoot(t)
	for asked, want := range map[string]string{
		"DestinationRule":                                       "rule rule.count rule.inner rule.inner.deep rule.mode",
		"destinationrules spec.trafficPolicy":                   "rule rule.count rule.inner rule.inner.deep rule.mode",
		"DestinationRule trafficPolicy.outlierDetection.deep":   "rule.inner.deep",
		"DestinationRule trafficPolicy.outlierDetection":        "rule.count rule.inner rule.inner.deep",
		"DestinationRule spec.trafficPolicy.outlierDetection.x": "rule.inner",
		"DestinationRule spec.subsets":                          "",
		"VirtualService spec.http[0].timeout":                   "routes",
		"ServiceEntry":                                          "routes",
		"Sidecar":                                               "",
	} {
		kind, path, _ := strings.Cut(asked, " ")
		found, err := root.becoming(kind, path)
		if err != nil {
			t.Errorf("%s: %v", asked, err)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.path())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: found %q, want %q", asked, got, want)
		}
	}
}

func TestTextIsWrapped(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two  three", 0, "one two three"},
		{"one two three", 7, "one two|three"},
		{"extraordinary word", 5, "extraordinary|word"},
		{"größe über alles", 10, "größe über|alles"},
		{"", 10, ""},
	} {
		if got := strings.Join(wrapText(test.text, test.width), "|"); got != test.want {
			t.Errorf("%q wrapped at %d is %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
