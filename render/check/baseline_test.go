package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/world"
)

// Nobody reads the retired field, and Istio drops the misspelled ones.
const retired = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {consecutiveErrors: 5}}}
`

const misspelled = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - {match: [{port: 80}], %s: 3s, redirect: {uri: /a}}
  - {%s: 3s, redirect: {uri: /b}}
`

func setOf(t *testing.T, text string) *render.Set {
	t.Helper()
	return &render.Set{Objects: objects(t, "web.yaml", []byte(text))}
}

func setRequest(t *testing.T, text string) check.Request {
	t.Helper()
	return check.Request{Set: setOf(t, text)}
}

func clusterOf(t *testing.T, text string) *world.Cluster {
	t.Helper()
	c := &world.Cluster{}
	for _, o := range objects(t, "live", []byte(text)) {
		c.Objects = append(c.Objects, o.Unstructured())
	}
	return c
}

// withCode lists the findings of a code.
func withCode(r *check.Report, code string) (all []check.Finding) {
	for _, f := range r.Findings {
		if f.Code == code {
			all = append(all, f)
		}
	}
	return all
}

func run(t *testing.T, q check.Request) *check.Report {
	t.Helper()
	r, err := check.New().Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatTheMeshHasAlreadyIsKnown(t *testing.T) {
	now := run(t, check.Request{Set: setOf(t, retired), Cluster: &world.Cluster{}})
	fresh := withCode(now, "MOOR016")
	if len(fresh) != 1 || fresh[0].Known || !fresh[0].Blocks(check.Error) {
		t.Fatalf("a fault that is new: %+v", fresh)
	}
	same := withCode(run(t, check.Request{Set: setOf(t, retired), Cluster: clusterOf(t, retired)}), "MOOR016")
	if len(same) != 1 || !same[0].Known || same[0].Blocks(check.Info) {
		t.Errorf("a fault that lives: %+v", same)
	}

	// The item of a list may have moved; but the same words once more are a fault that the mesh does not have, and so is another field.
	for _, test := range []struct {
		before, after [2]any
		known, all    int
	}{
		{[2]any{"timeot", "timeout"}, [2]any{"timeout", "timeot"}, 1, 1},
		{[2]any{"timeot", "timeout"}, [2]any{"timeot", "timeot"}, 1, 2},
		{[2]any{"timeot", "timeout"}, [2]any{"timeut", "timeout"}, 0, 1},
	} {
		got := withCode(run(t, check.Request{
			Set:     setOf(t, fmt.Sprintf(misspelled, test.after[:]...)),
			Cluster: clusterOf(t, fmt.Sprintf(misspelled, test.before[:]...)),
		}), "MOOR002")
		known := 0
		for _, f := range got {
			if f.Known {
				known++
			}
		}
		if len(got) != test.all || known != test.known {
			t.Errorf("from %v to %v: %d of %d are known, want %d of %d: %+v", test.before, test.after, known, len(got), test.known, test.all, got)
		}
	}
}

func TestSuppression(t *testing.T) {
	annotated := func(text string) *render.Set {
		s := setOf(t, retired)
		s.Objects[0].Unstructured().SetAnnotations(map[string]string{check.SuppressAnnotation: text})
		return s
	}
	from := setOf(t, retired)
	from.Objects[0].From = render.ID{Group: "mooring.dev", Kind: "AppConfiguration", Namespace: "shop", Name: "web"}
	resource := func(code, pattern string) check.Request {
		return check.Request{Set: from, Suppress: []check.Suppression{{Code: code, Resource: pattern}}}
	}
	for name, test := range map[string]struct {
		request check.Request
		by      string // empty: not suppressed
		reason  string
		warned  bool
	}{
		"nobody":                       {request: check.Request{Set: setOf(t, retired)}},
		"ignored":                      {request: check.Request{Set: setOf(t, retired), Ignore: []string{"MOOR016"}}, by: "check.ignore"},
		"another code ignored":         {request: check.Request{Set: setOf(t, retired), Ignore: []string{"IST0134"}}},
		"by name":                      {request: resource("MOOR016", "DestinationRule/shop/web"), by: "check.suppress"},
		"by pattern":                   {request: resource("MOOR016", "DestinationRule/shop/*"), by: "check.suppress"},
		"by what it was expanded from": {request: resource("MOOR016", "AppConfiguration/*/web"), by: "check.suppress"},
		"any code":                     {request: resource("*", "*/shop/*"), by: "check.suppress"},
		"another namespace":            {request: resource("MOOR016", "DestinationRule/bank/*")},
		"a star is one part":           {request: resource("MOOR016", "*")},
		"with a reason":                {request: check.Request{Set: annotated("MOOR016: old clients")}, by: check.SuppressAnnotation, reason: "old clients"},
		"several": {
			request: check.Request{Set: annotated("MOOR050: a; MOOR016: old clients; they go in May ;")}, by: check.SuppressAnnotation,
			reason: "old clients; they go in May",
		},
		"without a reason": {request: check.Request{Set: annotated("MOOR016")}, warned: true},
		"an empty reason":  {request: check.Request{Set: annotated("MOOR016: ")}, warned: true},
		"no code":          {request: check.Request{Set: annotated("all of it")}, warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, test.request)
			got := withCode(r, "MOOR016")
			if len(got) != 1 {
				t.Fatalf("%d findings, want one: suppressed ones are shown", len(got))
			}
			s := got[0].Suppressed
			switch {
			case s == nil && test.by != "":
				t.Error("not suppressed")
			case s != nil && (s.By != test.by || s.Reason != test.reason):
				t.Errorf("suppressed by %q because %q, want %q because %q", s.By, s.Reason, test.by, test.reason)
			case got[0].Blocks(check.Error) != (test.by == ""):
				t.Errorf("blocks: %v", got[0].Blocks(check.Error))
			}
			if warned := len(withCode(r, "MOOR018")) > 0; warned != test.warned {
				t.Errorf("warned of the annotation: %v", warned)
			}
		})
	}
}

func TestTheSecondCheckSaysTheSame(t *testing.T) {
	c, q := check.New(), check.Request{Set: setOf(t, retired), Cluster: clusterOf(t, retired)}
	text := func() string {
		r, err := c.Check(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return lines(r)
	}
	first := text()
	if second := text(); first != second || !strings.Contains(first, "MOOR016") {
		t.Errorf("first:\n%s\nsecond:\n%s", first, second)
	}
	// What is remembered of an object has no line: the same object may move in its file.
	q.Set.Objects[0].Origin.Line = 40
	if moved := text(); !strings.Contains(moved, "web.yaml:40:") {
		t.Errorf("after the object moved:\n%s", moved)
	}
}
