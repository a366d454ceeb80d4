package legacy

import (
	"fmt"
	"maps"
	"slices"
)

// rbac translates roles with their bindings. They held only where a ClusterRbacConfig switched them on; an AuthorizationPolicy holds at once.
func (t *translator) rbac() {
	switch t.kind() {
	case "ClusterRbacConfig", "RbacConfig":
		t.switchOn()
	case "ServiceRoleBinding":
		role, _ := t.spec("roleRef", "name").(string)
		object := t.find(fmt.Sprint(t.object["apiVersion"]), "ServiceRole", t.namespace(), role)
		if object == nil {
			t.but("the ServiceRole %s is not among the files: what it allows goes below to", role)
		}
		t.allow(t.name(), items(find(object, "spec", "rules")), items(t.spec("subjects")))
	case "ServiceRole":
		t.but("who is allowed says the ServiceRoleBinding: its subjects go below from")
		t.allow(t.name(), items(t.spec("rules")), nil)
	}
	if len(t.documents) > 0 {
		t.but("roles held where a ClusterRbacConfig switched them on; an AuthorizationPolicy holds as soon as it is there")
	}
}

func (t *translator) switchOn() {
	switch t.spec("mode") {
	case "ON":
		t.write("AuthorizationPolicy", rootNamespace, "allow-nothing", map[string]any{})
	case "ON_WITH_INCLUSION":
		for _, namespace := range texts(t.spec("inclusion", "namespaces")) {
			t.write("AuthorizationPolicy", namespace, "allow-nothing", map[string]any{})
		}
		if len(texts(t.spec("inclusion", "services"))) > 0 {
			t.but("services that are included need a policy with their selector each")
		}
	case "ON_WITH_EXCLUSION":
		t.write("AuthorizationPolicy", rootNamespace, "allow-nothing", map[string]any{})
		t.but("namespaces and services that were excluded need a policy that allows all")
	}
}

// allow writes a policy for each set of services that the rules of a role name.
func (t *translator) allow(name string, rules, subjects []map[string]any) {
	if len(rules) == 0 {
		rules = []map[string]any{{}}
	}
	for i, rule := range rules {
		services := texts(rule["services"])
		if len(services) == 0 || slices.Contains(services, "*") {
			services = []string{""}
		}
		for k, service := range services {
			policy := name
			if len(rules)*len(services) > 1 {
				policy = fmt.Sprintf("%s-%d", name, i*len(services)+k+1)
			}
			spec := map[string]any{"action": "ALLOW", "rules": []any{t.rule(rule, subjects)}}
			if service != "" {
				spec["selector"] = t.selector(service)
			}
			t.write("AuthorizationPolicy", t.namespace(), policy, spec)
		}
	}
}

func (t *translator) rule(role map[string]any, subjects []map[string]any) map[string]any {
	rule := map[string]any{}
	operation := map[string]any{}
	for _, field := range []string{"methods", "paths", "hosts"} {
		if list := texts(role[field]); len(list) > 0 && !slices.Contains(list, "*") {
			operation[field] = anys(list)
		}
	}
	if len(operation) > 0 {
		rule["to"] = []any{map[string]any{"operation": operation}}
	}
	if len(items(role["constraints"])) > 0 {
		t.but("constraints are written as when today")
	}
	var from []any
	for _, subject := range subjects {
		if source := t.source(subject); source != nil {
			from = append(from, map[string]any{"source": source})
		}
	}
	if len(from) > 0 && len(from) == len(subjects) {
		rule["from"] = from
	}
	return rule
}

// source of a subject; nil for everybody.
func (t *translator) source(subject map[string]any) map[string]any {
	source := map[string]any{}
	if user, ok := subject["user"].(string); ok && user != "*" {
		source["principals"] = []any{user}
	}
	properties, _ := subject["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		switch name {
		case "source.namespace":
			source["namespaces"] = []any{properties[name]}
		case "source.principal":
			source["principals"] = []any{properties[name]}
		case "source.ip":
			source["ipBlocks"] = []any{properties[name]}
		case "request.auth.principal":
			source["requestPrincipals"] = []any{properties[name]}
		default:
			t.but("the property %s is written as when today", name)
		}
	}
	if subject["group"] != nil {
		t.but("a group is a claim of the token today: when request.auth.claims[groups]")
	}
	if len(source) == 0 {
		return nil
	}
	return source
}
