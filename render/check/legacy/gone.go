package legacy

// mixer gives what a Mixer adapter's work is done by today. Nothing of it can be taken over as it is.
func (t *translator) mixer() {
	switch t.kind() {
	case "listchecker", "listentry", "denier", "checknothing":
		action := "ALLOW"
		if blacklist, _ := t.spec("blacklist").(bool); blacklist || t.kind() == "denier" || t.kind() == "checknothing" {
			action = "DENY"
		}
		source := map[string]any{"serviceAccounts": []any{t.namespace() + "/SERVICE-ACCOUNT"}}
		if entryType := t.spec("entryType"); entryType == "IP_ADDRESSES" {
			source = map[string]any{"ipBlocks": anys(texts(t.spec("overrides")))}
		}
		t.write("AuthorizationPolicy", t.namespace(), t.name(), map[string]any{
			"action": action, "selector": map[string]any{"matchLabels": map[string]any{"app": "WORKLOAD"}},
			"rules": []any{map[string]any{"from": []any{map[string]any{"source": source}}}},
		})
		t.but("Mixer compared any attribute, such as labels of the caller; today a caller is known by its service account, which needs mutual TLS")
	}
}

// routing gives the outline of what takes the place of the first routing API.
func (t *translator) routing() {
	host, _ := t.spec("destination", "name").(string)
	if host == "" {
		host = "HOST"
	}
	switch t.kind() {
	case "RouteRule":
		t.write("VirtualService", t.namespace(), t.name(), map[string]any{
			"hosts": []any{host}, "http": []any{map[string]any{"route": []any{map[string]any{"destination": map[string]any{"host": host}}}}},
		})
	case "DestinationPolicy":
		t.write("DestinationRule", t.namespace(), t.name(), map[string]any{"host": host, "trafficPolicy": map[string]any{}})
	case "EgressRule":
		service, _ := t.spec("destination", "service").(string)
		t.write("ServiceEntry", t.namespace(), t.name(), map[string]any{
			"hosts": []any{service}, "location": "MESH_EXTERNAL", "resolution": "DNS",
			"ports": []any{map[string]any{"number": int64(443), "name": "tls", "protocol": "TLS"}},
		})
	default:
		return
	}
	t.but("matches, weights and policies of the old API have other names and another order")
}
