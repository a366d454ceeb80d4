package proof_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/sync/proof"
)

type kind = schema.GroupKind

const service = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
---
`

func rule(subsets ...string) string {
	for i, s := range subsets {
		subsets[i] = fmt.Sprintf("{name: %s, labels: {version: %s}}", s, s)
	}
	return "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web}\nspec: {host: web, subsets: [" + strings.Join(subsets, ", ") + "]}\n---\n"
}

func route(subset string) string {
	return "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web}\n" +
		"spec: {hosts: [web], http: [{route: [{destination: {host: web, subset: " + subset + "}}]}]}\n---\n"
}

// TestOrders looks at one change, in orders that are right and wrong. Each order that is wrong must be found, and each that is right let through.
func TestOrders(t *testing.T) {
	added := []string{service + rule("v1") + route("v1"), service + rule("v1", "v2") + route("v2")}
	removed := []string{added[1], added[0]}
	swapped := []string{added[0], service + rule("v2") + route("v2")}
	dropped := []string{added[0], service}
	for _, test := range []struct {
		name   string
		change []string
		waves  []string
		want   []string // of the broken: cluster's subset, written, missing
	}{
		{"a subset and its route together", added, []string{"DestinationRule/web VirtualService/web"}, []string{"v2 VirtualService DestinationRule"}},
		{"the route first", added, []string{"VirtualService/web!", "DestinationRule/web"}, []string{"v2 VirtualService "}},
		{"the subset first, and nobody waits", added, []string{"DestinationRule/web", "VirtualService/web"}, []string{"v2 VirtualService DestinationRule"}},
		{"the subset first", added, []string{"DestinationRule/web!", "VirtualService/web"}, nil},
		{"a subset and its route go together", removed, []string{"DestinationRule/web VirtualService/web"}, []string{"v2 DestinationRule VirtualService"}},
		{"the subset goes first", removed, []string{"DestinationRule/web!", "VirtualService/web"}, []string{"v2 DestinationRule "}},
		{"the route goes first, and nobody waits", removed, []string{"VirtualService/web", "DestinationRule/web"}, []string{"v2 DestinationRule VirtualService"}},
		{"the route goes first", removed, []string{"VirtualService/web!", "DestinationRule/web"}, nil},
		{"no order is right without a step between", swapped, []string{"DestinationRule/web!", "VirtualService/web"}, []string{"v1 DestinationRule "}},
		{"all is deleted, the route first", dropped, []string{"VirtualService/web!", "DestinationRule/web"}, nil},
		{"all is deleted, and nobody waits", dropped, []string{"VirtualService/web", "DestinationRule/web"}, []string{"v1 DestinationRule VirtualService"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			r := f.prove(f.waves(f.plan(test.change[0], test.change[1]), test.waves...), proof.Options{})
			var got []string
			for _, v := range r.Broken {
				if v.Between || v.Stays || v.Object.Name != "web" || v.Field != "spec.http[0].route[0].destination" || v.Host != "web."+f.ns+".svc.cluster.local" {
					t.Errorf("unexpected: %+v", v)
				}
				got = append(got, strings.Split(v.Cluster, "|")[2]+" "+kinds(v.Written)+" "+kinds(v.Missing))
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, slices.Compact(got)); diff != "" {
				t.Errorf("broken (-want +got):\n%s", diff)
			}
			if r.OK() != (test.want == nil) || !r.All || r.States != int(r.Possible) {
				t.Errorf("all %t, %d states of %g, fine %t", r.All, r.States, r.Possible, r.OK())
			}
		})
	}
}

func kinds(all []proof.Write) string {
	var names []string
	for _, w := range all {
		names = append(names, w.ID.Kind)
	}
	return strings.Join(names, ",")
}

// TestAllStates counts them: of two writes of one kind and one of another, all eight sets; in two waves, of the kind that is in both, one after the other.
func TestAllStates(t *testing.T) {
	other := strings.NewReplacer("name: web}", "name: other}", "hosts: [web]", "hosts: [shop.example.com]")
	f := newFixture(t)
	p := f.plan(service+rule("v1", "v2")+route("v1")+other.Replace(route("v1")),
		service+rule("v1", "v2", "v3")+route("v2")+other.Replace(route("v2")))
	for _, test := range []struct {
		waves []string
		want  int
	}{
		{[]string{"DestinationRule/web VirtualService/web VirtualService/other"}, 8},
		{[]string{"DestinationRule/web VirtualService/web", "VirtualService/other"}, 6},
		{[]string{"DestinationRule/web!", "VirtualService/web", "VirtualService/other"}, 4},
		{[]string{"DestinationRule/web!", "VirtualService/web VirtualService/other"}, 5},
		{[]string{"DestinationRule/web!", "VirtualService/web!", "VirtualService/other"}, 4},
	} {
		r := f.prove(f.waves(p, test.waves...), proof.Options{})
		if r.States != test.want || r.Possible != float64(test.want) || !r.All || !r.OK() || r.Writes != 3 {
			t.Errorf("%v: %d states of %g, %d writes: %s", test.waves, r.States, r.Possible, r.Writes, r)
		}
	}
}

// TestSomeStates leaves out most, and still finds each of many faults, by the two that make it.
func TestSomeStates(t *testing.T) {
	f := newFixture(t)
	const n = 9
	var old, wanted strings.Builder
	var all []string
	for i := range n {
		name := fmt.Sprintf("web%d", i)
		named := strings.NewReplacer("name: web}", "name: "+name+"}", "host: web", "host: "+name, "hosts: [web]", "hosts: ["+name+"]")
		old.WriteString(named.Replace(service + rule("v1") + route("v1")))
		wanted.WriteString(named.Replace(service + rule("v1", "v2") + route("v2")))
		all = append(all, "VirtualService/"+name, "DestinationRule/"+name)
	}
	p := f.waves(f.plan(old.String(), wanted.String()), strings.Join(all, " "))
	r := f.prove(p, proof.Options{Limit: 60, Seed: 1})
	if r.All || r.Possible != 1<<(2*n) || r.States != 61 {
		t.Errorf("%d states of %g", r.States, r.Possible)
	}
	if len(r.Broken) != n {
		t.Errorf("%d faults, want %d", len(r.Broken), n)
	}
	for _, v := range r.Broken {
		if len(v.Written) != 1 || v.Written[0].ID != v.Object || len(v.Missing) != 1 || v.Missing[0].ID.Name != v.Object.Name || v.Missing[0].ID.Kind != "DestinationRule" {
			t.Errorf("not told which two writes make it: %+v", v)
		}
	}
	again := f.prove(p, proof.Options{Limit: 60, Seed: 1})
	if diff := cmp.Diff(r.String(), again.String()); diff != "" {
		t.Errorf("with the same seed (-first +again):\n%s", diff)
	}
	if few := f.prove(p, proof.Options{Limit: 5}); few.States != 6 || few.OK() {
		t.Errorf("with a low limit: %d states", few.States)
	}
}

// TestBetween finds what is wrong only after clusters have come and before routes have: here both change by one write.
func TestBetween(t *testing.T) {
	const two = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: two}
spec: {hosts: [a.example.com], resolution: STATIC, endpoints: [{address: 10.0.0.1}], ports: [{name: http, number: 80, protocol: HTTP}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec: {hosts: [web], http: [{route: [{destination: {host: a.example.com}}]}]}
---
`
	const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default}
spec: {egress: [{hosts: [./none.example.com]}]}
---
`
	// The port goes, and the virtual host with it: nobody can do better.
	ports := strings.NewReplacer("{name: http, port: 80}", "{name: http, port: 80}, {name: more, port: 81}")
	wide := strings.NewReplacer("destination: {host: web, subset: v1}", "destination: {host: web}")
	f := newFixture(t)
	r := f.prove(f.waves(f.plan(ports.Replace(service)+wide.Replace(route("v1")), service+wide.Replace(route("v1"))), "Service/web"), proof.Options{})
	if !r.OK() || len(r.Retired) != 1 || r.Retired[0].Port != 81 || !r.Retired[0].Between || kinds(r.Retired[0].Written) != "Service" || r.Pairs != 1 {
		t.Errorf("a port that goes: %+v", r)
	}
	// A Sidecar takes the service and the rest out of sight; the virtual hosts go with it.
	f = newFixture(t)
	r = f.prove(f.waves(f.plan(service+two, service+two+sidecar), "Sidecar/default"), proof.Options{})
	if !r.OK() || len(r.Retired) == 0 {
		t.Errorf("what a Sidecar hides: %+v", r)
	}
	// Another takes the service that a route leads to out of sight, and the VirtualService with it; the virtual host stays. Between the two it breaks.
	const elsewhere = `
apiVersion: v1
kind: Service
metadata: {name: b, namespace: $OTHER}
spec: {selector: {app: b}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: $OTHER}
spec: {hosts: [web.$NS.svc.cluster.local], http: [{route: [{destination: {host: b}}]}]}
---
`
	f = newFixture(t)
	f.other = f.cluster.Namespace(t)
	others := strings.ReplaceAll(elsewhere, "$NS", f.ns)
	own := strings.Replace(sidecar, "none.example.com", "*", 1)
	r = f.prove(f.waves(f.plan(service+others, service+others+own), "Sidecar/default"), proof.Options{})
	if len(r.Broken) != 1 || !r.Broken[0].Between || kinds(r.Broken[0].Written) != "Sidecar" || r.Broken[0].Proxies[0].Namespace != f.ns {
		t.Errorf("a Sidecar that hides a route and its cluster: %+v", r)
	}
}

// TestStreams looks at routes of tcp, which are parts of listeners.
func TestStreams(t *testing.T) {
	tcp := strings.NewReplacer("name: http, port: 80", "name: tcp, port: 5432", "http: [{route", "tcp: [{route")
	for _, test := range []struct {
		waves []string
		want  int
	}{
		{[]string{"DestinationRule/web VirtualService/web"}, 1},
		{[]string{"DestinationRule/web!", "VirtualService/web"}, 0},
	} {
		f := newFixture(t)
		p := f.plan(tcp.Replace(service+rule("v1")+route("v1")), tcp.Replace(service+rule("v1", "v2")+route("v2")))
		r := f.prove(f.waves(p, test.waves...), proof.Options{})
		if len(r.Broken) != test.want {
			t.Errorf("%v: %s", test.waves, r)
		}
		for _, v := range r.Broken {
			if v.Field != "spec.tcp[0].route[0].destination" || !strings.HasSuffix(v.Listener, "_5432") || kinds(v.Written)+kinds(v.Missing) != "VirtualServiceDestinationRule" {
				t.Errorf("%+v", v)
			}
		}
	}
	// All goes, the listener too; and the route alone goes, before its subset.
	f := newFixture(t)
	all := tcp.Replace(service + rule("v1") + route("v1"))
	p := f.plan(all, tcp.Replace("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"))
	if r := f.prove(f.waves(p, "VirtualService/web!", "DestinationRule/web Service/web"), proof.Options{}); !r.OK() || len(r.Retired) > 0 {
		t.Error(r)
	}
	if r := f.prove(f.waves(p, "Service/web!", "VirtualService/web"), proof.Options{}); !r.OK() || len(r.Retired) != 1 {
		t.Error(r)
	}
	if r := f.prove(f.waves(p, "DestinationRule/web!", "VirtualService/web"), proof.Options{}); r.OK() {
		t.Error(r)
	}
}

// TestKnown tells what the plan is not to blame for.
func TestKnown(t *testing.T) {
	f := newFixture(t)
	// v9 leads to nothing, before and after.
	r := f.prove(f.waves(f.plan(service+rule("v1")+route("v9"), service+rule("v1", "v2")+route("v9")), "DestinationRule/web"), proof.Options{})
	if !r.OK() || len(r.Known) != 1 || !r.Known[0].Stays {
		t.Errorf("before and after: %+v", r)
	}
	// The commit mends it, and until then it is as it was.
	f = newFixture(t)
	r = f.prove(f.waves(f.plan(service+rule("v1")+route("v9"), service+rule("v1", "v9")+route("v9")), "DestinationRule/web"), proof.Options{})
	if !r.OK() || len(r.Known) != 1 || r.Known[0].Stays {
		t.Errorf("mended: %+v", r)
	}
	// The commit wants it.
	f = newFixture(t)
	r = f.prove(f.waves(f.plan(service+rule("v1")+route("v1"), service+rule("v1")+route("v9")), "VirtualService/web"), proof.Options{})
	if !r.OK() || len(r.Known) != 1 || !r.Known[0].Stays {
		t.Errorf("wanted: %+v", r)
	}
	// The commit takes away what a route still uses: it breaks, and no order helps.
	f = newFixture(t)
	r = f.prove(f.waves(f.plan(service+rule("v1")+route("v1"), service+rule("v2")+route("v1")), "DestinationRule/web"), proof.Options{})
	if r.OK() || !r.Broken[0].Stays {
		t.Errorf("broken by the commit: %+v", r)
	}
}

func TestUnreadAndLate(t *testing.T) {
	f := newFixture(t)
	p := f.waves(f.plan(service+rule("v1")+route("v1"), service+rule("v1", "v2")+route("v2")), "DestinationRule/web VirtualService/web")
	live := f.live()
	live.Unread = map[kind]string{{Group: "networking.istio.io", Kind: "Sidecar"}: "forbidden", {Kind: "Secret"}: "forbidden"}
	r, err := proof.Plan(t.Context(), p, live, proof.Options{})
	if err != nil || !strings.Contains(r.String(), "not proved: Sidecar.networking.istio.io was not read: forbidden") || len(r.Unread) != 1 {
		t.Errorf("%v: %v", err, r)
	}
	late, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("time is up")
	cancel(reason)
	if r, err := proof.Plan(late, p, live, proof.Options{}); !errors.Is(err, reason) || r == nil {
		t.Errorf("%v: %v", err, r)
	}
}
