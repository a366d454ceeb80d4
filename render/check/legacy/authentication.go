package legacy

import "fmt"

// rootNamespace is where policies for the whole mesh are, unless the installation says otherwise.
const rootNamespace = "istio-system"

// authentication translates a MeshPolicy or a Policy: peers are a PeerAuthentication, origins a RequestAuthentication and the AuthorizationPolicy
// that demands a token.
func (t *translator) authentication() {
	switch t.kind() {
	case "MeshPolicy":
		t.policy(rootNamespace, "default", nil)
	case "Policy":
		targets := items(t.spec("targets"))
		if len(targets) == 0 {
			t.policy(t.namespace(), "default", nil)
			return
		}
		for i, target := range targets {
			name := t.name()
			if len(targets) > 1 {
				name = fmt.Sprintf("%s-%d", name, i+1)
			}
			t.policy(t.namespace(), name, target)
		}
	}
}

func (t *translator) policy(namespace, name string, target map[string]any) {
	spec := map[string]any{"mtls": map[string]any{"mode": t.mode()}}
	var selector map[string]any
	if target != nil {
		selector = t.selector(fmt.Sprint(target["name"]))
		spec["selector"] = selector
		t.ports(spec, target)
	}
	if t.spec("peers") != nil || t.spec("origins") == nil {
		t.write("PeerAuthentication", namespace, name, spec)
	}
	t.origins(namespace, name, selector)
}

// mode of mutual TLS. Without peers nothing but plain text was taken.
func (t *translator) mode() string {
	optional, _ := t.spec("peerIsOptional").(bool)
	for _, peer := range items(t.spec("peers")) {
		if !has(peer, "mtls") {
			continue
		}
		if optional || find(peer, "mtls", "mode") == "PERMISSIVE" {
			return "PERMISSIVE"
		}
		return "STRICT"
	}
	return "DISABLE"
}

// ports of a target are those of the Service; a PeerAuthentication has those of the workload, and the others keep what they had.
func (t *translator) ports(spec, target map[string]any) {
	ports := items(target["ports"])
	if len(ports) == 0 {
		return
	}
	service := t.find("v1", "Service", t.namespace(), fmt.Sprint(target["name"]))
	level := map[string]any{}
	for _, p := range ports {
		number := p["number"]
		for _, sp := range items(find(service, "spec", "ports")) {
			if sp["port"] == number && number != nil || sp["name"] == p["name"] && p["name"] != nil {
				number = sp["port"]
				if sp["targetPort"] != nil {
					number = sp["targetPort"]
				}
			}
		}
		if service == nil {
			t.but("the ports of a target are those of the Service, today's those of the workload")
		}
		if _, named := number.(string); named || number == nil {
			t.but("the port %v needs the number that the workload listens on", p["name"])
			continue
		}
		level[fmt.Sprint(number)] = map[string]any{"mode": t.mode()}
	}
	delete(spec, "mtls")
	if len(level) > 0 {
		spec["portLevelMtls"] = level
	}
}

func (t *translator) origins(namespace, name string, selector map[string]any) {
	var rules []any
	for _, origin := range items(t.spec("origins")) {
		jwt, ok := origin["jwt"].(map[string]any)
		if !ok {
			continue
		}
		rule := map[string]any{}
		for old, now := range map[string]string{"issuer": "issuer", "jwksUri": "jwksUri", "jwks": "jwks", "audiences": "audiences", "jwtParams": "fromParams"} {
			if v := jwt[old]; v != nil {
				rule[now] = v
			}
		}
		if headers := named(jwt["jwtHeaders"]); headers != nil {
			rule["fromHeaders"] = headers
		}
		if jwt["triggerRules"] != nil || jwt["trigger_rules"] != nil {
			t.but("triggerRules chose the paths that need a token; write them as paths of the AuthorizationPolicy")
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return
	}
	request := map[string]any{"jwtRules": rules}
	demand := map[string]any{
		"action": "DENY",
		"rules":  []any{map[string]any{"from": []any{map[string]any{"source": map[string]any{"notRequestPrincipals": []any{"*"}}}}}},
	}
	if selector != nil {
		request["selector"], demand["selector"] = selector, selector
	}
	t.write("RequestAuthentication", namespace, name, request)
	if optional, _ := t.spec("originIsOptional").(bool); !optional {
		t.write("AuthorizationPolicy", namespace, name+"-token", demand)
	}
	if binding := t.spec("principalBinding"); binding != nil && binding != "USE_PEER" {
		t.but("rules that read the caller from %v read requestPrincipals today", binding)
	}
}
