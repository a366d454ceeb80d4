package apply

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// judge says how a complete object is, and why where it is not Current.
type judge func(full *unstructured.Unstructured) (status.Status, string)

// meshHealth is how objects of a kind tell their health, for kinds that do it in a way that kstatus does not read; nil for all others.
func meshHealth(kind schema.GroupKind) judge {
	switch {
	case kind.Group == "gateway.networking.k8s.io":
		switch kind.Kind {
		case "Gateway":
			return judgeGateway
		case "GatewayClass":
			return func(full *unstructured.Unstructured) (status.Status, string) {
				return allTrue(full, conditionsOf(full.Object, "status", "conditions"), "", "Accepted")
			}
		case "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute":
			return judgeRoute
		}
	case strings.HasSuffix(kind.Group, ".istio.io"):
		return judgeIstio
	}
	return nil
}

// condition of a status, as far as it matters here.
type condition struct {
	Type, Status, Reason, Message string
	// Generation that it speaks of; 0 when it does not say.
	Generation int64
}

// says is what the condition tells, for a message.
func (c condition) says() string {
	return strings.TrimSuffix(fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message), ": ")
}

// conditionsOf reads a list of conditions. What is none is left out.
func conditionsOf(object map[string]any, fields ...string) []condition {
	list, _, _ := unstructured.NestedSlice(object, fields...)
	var all []condition
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(name string) string { s, _ := fields[name].(string); return s }
		if text("type") == "" {
			continue
		}
		c := condition{Type: text("type"), Status: text("status"), Reason: text("reason"), Message: text("message")}
		switch generation := fields["observedGeneration"].(type) {
		case int64:
			c.Generation = generation
		case string: // as Istio writes it
			c.Generation, _ = strconv.ParseInt(generation, 10, 64)
		}
		all = append(all, c)
	}
	return all
}

// of is true for a condition that speaks of the object as it is now.
func (c condition) of(full *unstructured.Unstructured) bool {
	return c.Generation == 0 || c.Generation == full.GetGeneration()
}

// allTrue wants these conditions, of this generation, to be True. A False one is Failed, unless its reason says that it is on its way.
func allTrue(full *unstructured.Unstructured, found []condition, whose string, wanted ...string) (status.Status, string) {
	for _, kind := range wanted {
		var c condition
		for _, one := range found {
			if one.Type == kind {
				c = one
			}
		}
		switch {
		case c.Type == "":
			return status.InProgressStatus, whose + kind + " is not there yet"
		case !c.of(full):
			return status.InProgressStatus, fmt.Sprintf("%s%s speaks of generation %d, and this is %d", whose, kind, c.Generation, full.GetGeneration())
		case c.Status == "True":
		case c.Status == "False" && c.Reason != "Pending" && c.Reason != "AddressNotAssigned":
			return status.FailedStatus, whose + c.says()
		default:
			return status.InProgressStatus, whose + c.says()
		}
	}
	return status.CurrentStatus, ""
}

// judgeGateway reads what the controller of a Gateway of the Gateway API says (https://gateway-api.sigs.k8s.io/geps/gep-1364/): Accepted
// that it will, Programmed that the proxies have it. A Gateway that no controller looks at keeps the "Unknown" that its definition puts in.
func judgeGateway(full *unstructured.Unstructured) (status.Status, string) {
	return allTrue(full, conditionsOf(full.Object, "status", "conditions"), "", "Accepted", "Programmed")
}

// judgeRoute wants every parent that a route names to have accepted it, and all that it refers to to be there.
func judgeRoute(full *unstructured.Unstructured) (status.Status, string) {
	wanted, _, _ := unstructured.NestedSlice(full.Object, "spec", "parentRefs")
	parents, _, _ := unstructured.NestedSlice(full.Object, "status", "parents")
	for _, item := range parents {
		parent, _ := item.(map[string]any)
		name, _, _ := unstructured.NestedString(parent, "parentRef", "name")
		if s, why := allTrue(full, conditionsOf(parent, "conditions"), "parent "+name+": ", "Accepted", "ResolvedRefs"); s != status.CurrentStatus {
			return s, why
		}
	}
	if len(parents) < len(wanted) {
		return status.InProgressStatus, fmt.Sprintf("%d of its %d parents have said something about it", len(parents), len(wanted))
	}
	return status.CurrentStatus, ""
}

// troubled says what a condition of istiod's means that is as it should not be; empty for one that is well or that nobody here knows.
func (c condition) troubled() status.Status {
	bad := "False"
	if c.Type == "istio.io/WaypointMissing" {
		bad = "True"
	}
	if c.Status != bad {
		return ""
	}
	switch c.Type {
	case "PassedValidation", "PassedAnalysis", "ZtunnelAccepted", "WaypointAccepted":
		return status.FailedStatus
	case "Reconciled", "istio.io/WaypointBound", "istio.io/WaypointMissing", "Healthy", "Ready":
		return status.InProgressStatus // others may put it right: a proxy that acknowledges, a waypoint that is made, a machine that answers
	}
	return ""
}

// judgeIstio reads what istiod writes into the status of its own kinds: conditions, and the messages of its analyzers where
// it analyses (PILOT_ENABLE_ANALYSIS; https://istio.io/latest/docs/reference/config/status/). Most installations write nothing, and then
// there is nothing to wait for. For the same reason a status about an earlier generation says nothing: istiod writes a new one only when
// it has something new to say, so that to wait for it, as kstatus would, might be for ever.
func judgeIstio(full *unstructured.Unstructured) (status.Status, string) {
	observed, _, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration")
	stale := observed != 0 && observed != full.GetGeneration()
	if messages := errorsOfAnalyzers(full); len(messages) > 0 && !stale {
		return status.FailedStatus, "istiod finds " + strings.Join(messages, ", ")
	}
	verdict, why := status.CurrentStatus, ""
	for _, c := range conditionsOf(full.Object, "status", "conditions") {
		if stale && c.Generation == 0 || !c.of(full) {
			continue
		}
		if s := c.troubled(); s != "" && verdict != status.FailedStatus {
			verdict, why = s, c.says()
		}
	}
	return verdict, why
}

// errorsOfAnalyzers are the messages of level ERROR, as "IST0101 ReferencedResourceNotFound". They are all that the status has of them: istiod's log, and
// mooring check, know the whole.
func errorsOfAnalyzers(full *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(full.Object, "status", "validationMessages")
	var all []string
	for _, item := range list {
		message, _ := item.(map[string]any)
		if level, ok := message["level"].(string); !ok || level != "ERROR" {
			if number, ok := message["level"].(int64); !ok || number != 3 { // ERROR in analysis/v1alpha1/message.proto
				continue
			}
		}
		code, _, _ := unstructured.NestedString(message, "type", "code")
		name, _, _ := unstructured.NestedString(message, "type", "name")
		all = append(all, strings.TrimSpace(code+" "+name))
	}
	return all
}
