package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
)

// objectOf reads one from YAML. Its numbers are those that the API server's answers have.
func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	u := &unstructured.Unstructured{}
	if err == nil {
		err = u.UnmarshalJSON(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// healthy compares the health of an object with "Status" or "Status: part of the message".
func healthy(t *testing.T, h apply.Health, want string) {
	t.Helper()
	status, part, _ := strings.Cut(want, ": ")
	if string(h.Status) != status || !strings.Contains(h.Message, part) {
		t.Errorf("health is %s: %q, want %s with %q", h.Status, h.Message, status, part)
	}
	if h.Current() && h.Message != "" {
		t.Errorf("it is healthy, and says %q", h.Message)
	}
}

func TestHealthOfIstioKinds(t *testing.T) {
	for _, c := range []struct{ name, kind, status, want string }{
		{"nobody writes a status", "VirtualService", `{}`, "Current"},
		{"analysed and fine", "VirtualService", `{observedGeneration: "3", validationMessages: []}`, "Current"},
		{
			"an error of the analyzers", "VirtualService", `{observedGeneration: "3", validationMessages: [
			{level: WARNING, type: {code: IST0002, name: Deprecated}}, {level: ERROR, type: {code: IST0101, name: ReferencedResourceNotFound}}]}`,
			"Failed: istiod finds IST0101 ReferencedResourceNotFound",
		},
		{"an error as a number", "VirtualService", `{observedGeneration: 3, validationMessages: [{level: 3, type: {code: IST0101}}]}`, "Failed: IST0101"},
		{"warnings and hints", "VirtualService", `{validationMessages: [{level: WARNING, type: {code: IST0002}}, {level: INFO}, {level: 8}, 7, {}]}`, "Current"},
		// istiod writes again when it has something to say, and else never.
		{"an error about what was before", "VirtualService", `{observedGeneration: "2", validationMessages: [{level: ERROR, type: {code: IST0101}}]}`, "Current"},
		{"a condition about what was before", "VirtualService", `{observedGeneration: "2", conditions: [{type: PassedValidation, status: "False"}]}`, "Current"},
		{
			"proxies that have not acknowledged", "DestinationRule", `{conditions: [{type: Reconciled, status: "False", reason: Pending, message: 3/4 proxies up to date}]}`,
			"InProgress: Reconciled is False (Pending): 3/4 proxies up to date",
		},
		{"reconciled", "DestinationRule", `{conditions: [{type: Reconciled, status: "True"}, {type: PassedValidation, status: "True"}]}`, "Current"},
		{
			"not valid is worse than not there yet", "DestinationRule", `{conditions: [{type: Reconciled, status: "False"}, {type: PassedValidation, status: "False", reason: errorsFound}, {type: Ready, status: "False"}]}`,
			"Failed: PassedValidation is False (errorsFound)",
		},
		{
			"a policy that ztunnel does not take", "AuthorizationPolicy", `{conditions: [{type: ZtunnelAccepted, status: "False", reason: UnsupportedValue, message: "ztunnel does not support HTTP attributes", observedGeneration: "3"}]}`,
			"Failed: ztunnel does not support HTTP attributes",
		},
		{"the same about an earlier generation", "AuthorizationPolicy", `{conditions: [{type: ZtunnelAccepted, status: "False", observedGeneration: "2"}]}`, "Current"},
		{"a waypoint that is missing", "ServiceEntry", `{conditions: [{type: istio.io/WaypointMissing, status: "True", reason: NoWaypointForWildcardService}]}`, "InProgress: NoWaypointForWildcardService"},
		{"a waypoint that is there", "ServiceEntry", `{conditions: [{type: istio.io/WaypointBound, status: "True"}, {type: istio.io/WaypointMissing, status: "False"}]}`, "Current"},
		{"what only informs", "ServiceEntry", `{conditions: [{type: istio.io/VisibilityApplied, status: "False"}]}`, "Current"},
		{"a machine that does not answer", "WorkloadEntry", `{conditions: [{type: Healthy, status: "False", message: connection refused}]}`, "InProgress: connection refused"},
		{"a status that is none", "WorkloadEntry", `{conditions: {}, validationMessages: 7}`, "Current"},
	} {
		t.Run(c.name, func(t *testing.T) {
			group := map[bool]string{true: "security.istio.io/v1", false: "networking.istio.io/v1"}[c.kind == "AuthorizationPolicy"]
			u := objectOf(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a, namespace: n, generation: 3}\nstatus: %s\n", group, c.kind, c.status))
			healthy(t, apply.HealthOf(u, nil), c.want)
		})
	}
}

func TestHealthOfGatewayAPI(t *testing.T) {
	const fine = `[{type: Accepted, status: "True", reason: Accepted, observedGeneration: 3}, {type: Programmed, status: "True", reason: Programmed, observedGeneration: 3}]`
	const resolved = `[{type: Accepted, status: "True", observedGeneration: 3}, {type: ResolvedRefs, status: "True", observedGeneration: 3}]`
	for _, c := range []struct{ name, kind, spec, status, want string }{
		{"programmed", "Gateway", "{}", "{conditions: " + fine + "}", "Current"},
		{
			"as the definition makes it", "Gateway", "{}", `{conditions: [{type: Accepted, status: Unknown, reason: Pending, message: Waiting for controller}, {type: Programmed, status: Unknown, reason: Pending}]}`,
			"InProgress: Accepted is Unknown (Pending): Waiting for controller",
		},
		{"no status", "Gateway", "{}", "{}", "InProgress: Accepted is not there yet"},
		{"of an earlier generation", "Gateway", "{}", `{conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}`, "InProgress: Accepted speaks of generation 2, and this is 3"},
		{"not accepted", "Gateway", "{}", `{conditions: [{type: Accepted, status: "False", reason: ListenersNotValid, message: bad port}]}`, "Failed: ListenersNotValid"},
		{"no address yet", "Gateway", "{}", `{conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "False", reason: AddressNotAssigned}]}`, "InProgress: AddressNotAssigned"},
		{"a class", "GatewayClass", "{}", `{conditions: [{type: Accepted, status: "True"}]}`, "Current"},
		{"a class that nobody serves", "GatewayClass", "{}", `{conditions: [{type: Accepted, status: Unknown, reason: Pending}]}`, "InProgress: Pending"},
		{"a route", "HTTPRoute", "{parentRefs: [{name: gw}]}", "{parents: [{parentRef: {name: gw}, conditions: " + resolved + "}]}", "Current"},
		{"a route that nobody has looked at", "HTTPRoute", "{parentRefs: [{name: gw}]}", "{parents: []}", "InProgress: 0 of its 1 parents"},
		{"a route with one parent of two", "GRPCRoute", "{parentRefs: [{name: gw}, {name: other}]}", "{parents: [{parentRef: {name: gw}, conditions: " + resolved + "}]}", "InProgress: 1 of its 2 parents"},
		{
			"a route to nothing", "TCPRoute", "{parentRefs: [{name: gw}]}", `{parents: [{parentRef: {name: gw}, conditions: [{type: Accepted, status: "True"}, {type: ResolvedRefs, status: "False", reason: BackendNotFound, message: "backend(reviews) not found"}]}]}`,
			"Failed: parent gw: ResolvedRefs is False (BackendNotFound): backend(reviews) not found",
		},
		{"a route without parents", "HTTPRoute", "{}", "{}", "Current"},
		{"a grant", "ReferenceGrant", "{}", "{}", "Current"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := objectOf(t, fmt.Sprintf("apiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: a, namespace: n, generation: 3}\nspec: %s\nstatus: %s\n", c.kind, c.spec, c.status))
			healthy(t, apply.HealthOf(u, nil), c.want)
		})
	}
}
