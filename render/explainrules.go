package render

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"
)

// originAnnotation is where kustomize keeps where an object comes from while it builds.
const originAnnotation = "config.kubernetes.io/origin"

// explainRule explains the texts that a pattern matches.
type explainRule struct {
	text    *regexp.Regexp
	explain func(x *explainer, m []string) error
}

// rules are tried in order. The patterns are the texts of kustomize 0.21; a text that changes in a later one falls back to being cut down,
// and a golden test shows it.
func rules() []explainRule {
	on := func(text string, f func(x *explainer, m []string) error) explainRule {
		return explainRule{regexp.MustCompile(text), f}
	}
	return append([]explainRule{
		on(`may not add resource with an already registered id: (\S+)`, explainTwice),
		on(`(?s)namespace transformation produces ID conflict: (\[.*)`, explainConflict),
		on(`cycle detected: candidate root '([^']*)'`, func(x *explainer, m []string) error {
			field, value := x.entry(m[1])
			return x.at(field, value, "", "%s goes in a circle: it leads back to %s", value, m[1])
		}),
		on(`path "([^"]*)" is ambiguous`, func(x *explainer, m []string) error {
			return x.at("resources", m[1], "look at the indentation: two entries may have become one", "%s is not a path that anybody means", m[1])
		}),
		on(`(?s)accumulation err='(.*)': must build at directory: '([^']*)': file is not directory`, func(x *explainer, m []string) error {
			return &Error{File: m[2], Err: x.say("%s", brief(m[1]))}
		}),
	}, append(append(patchRules(on), generatorRules(on)...), otherRules(on)...)...)
}

type onText func(string, func(*explainer, []string) error) explainRule

func patchRules(on onText) []explainRule {
	return []explainRule{
		on(`(no|multiple) matches for Id \S+; failed to find unique target for patch (\S+)`, func(x *explainer, m []string) error {
			i := parseID(m[2])
			if m[1] == "multiple" {
				return x.patch(mergePatch(i), "give the patch a namespace, or a target", "there are several objects that the patch for %s could mean", i)
			}
			return x.patch(mergePatch(i), x.similar(i, m[2]), "there is no object %s to patch", i)
		}),
		on(`(?s)((?:\w+ operation does not apply|error in \w+ for path|testing (?:path|value))\b.*?(/[^:\s']*).*)`, func(x *explainer, m []string) error {
			return x.patch(operationAt(m[2]), "", "the JSON patch does not fit: %s", brief(m[1]))
		}),
		on(`(?s)unable to parse SM or JSON patch from \[(path|patch): (".*")\]`, func(x *explainer, m []string) error {
			return x.named(m, "a strategic merge patch has apiVersion, kind and metadata.name, a JSON patch is a list of operations", "is neither a strategic merge patch nor a JSON patch")
		}),
		on(`(?s)illegally qualifies as both an SM and JSON patch: \[(path|patch): (".*")\]`, func(x *explainer, m []string) error {
			return x.named(m, "write two patches", "is a strategic merge patch and a JSON patch at once")
		}),
		on(`(?s)must specify a target for JSON patch \[(path|patch): (".*")\]`, func(x *explainer, m []string) error {
			return x.named(m, "add a target beside it", "is a JSON patch and has no target")
		}),
		on(`must specify one of patch and path in`, func(x *explainer, _ []string) error {
			return x.at("patches", "", "", "an entry has neither a patch nor a path")
		}),
		on(`patch appears to be empty; files=`, func(x *explainer, _ []string) error {
			return x.at("patchesStrategicMerge", "", "remove them from the list", "the files hold no patch")
		}),
		on(`patch and path can't be set at the same time`, func(x *explainer, _ []string) error {
			return x.at("patches", "", "keep one of them", "an entry has a patch and a path")
		}),
		on(`unable to find patch target .*: (error parsing regexp: .*)`, func(x *explainer, m []string) error {
			return x.at("patches", "", "", "a target is no regular expression: %s", brief(m[1]))
		}),
		on(`wrong node kind: expected (\w+)Node but got (\w+)Node`, func(x *explainer, m []string) error {
			return &Error{File: x.k.file, Err: x.say("a patch or transformer finds a %s where it needs a %s", strings.ToLower(m[2]), strings.ToLower(m[1]))}
		}),
	}
}

// similar says what the author of a patch without an object may have meant.
func (x *explainer) similar(i id, kustomizeID string) string {
	for _, name := range sortedKeys(x.v.sources) {
		for _, s := range x.v.sources[name] {
			group, version, ok := strings.Cut(s.apiVersion, "/")
			if !ok {
				group, version = "[noGrp]", s.apiVersion
			}
			switch {
			case s.kind != i.kind || s.name != i.name:
			case !strings.HasPrefix(kustomizeID, s.kind+"."+version+"."+group+"/"):
				return fmt.Sprintf("%s has one with apiVersion %s: write that", s.at, s.apiVersion)
			case s.namespace != i.namespace:
				return fmt.Sprintf("%s has one in namespace %q, and a patch must have the same", s.at, s.namespace)
			}
		}
	}
	return "bring the object in under resources, or look at the kind and the name"
}

// named makes an error at the patch that a text names by its path or quotes.
func (x *explainer) named(m []string, hint, problem string) error {
	var value string
	if err := json.Unmarshal([]byte(m[2]), &value); err != nil {
		value = strings.Trim(m[2], `"`)
	}
	if m[1] == "path" {
		return x.at("patches", value, hint, "%s %s", value, problem)
	}
	return x.patch(thePatch(value), hint, "the patch %s", problem)
}

func generatorRules(on onText) []explainRule {
	return []explainRule{
		on(`id resid\.ResId\{.*Kind:"(\w+)".*\}, Name:"([^"]*)".* (exists|does not exist); can`, func(x *explainer, m []string) error {
			if m[3] == "exists" {
				return x.at(generatorField(m[1]), m[2], "give it another name, or behavior: merge or replace", "there is another %s %s", m[1], m[2])
			}
			return x.at(generatorField(m[1]), m[2], "take the behavior away, or bring the object in under resources", "there is no %s %s to merge with or replace", m[1], m[2])
		}),
		on("configmap (\\S+) illegally repeats the key `([^`]*)`", func(x *explainer, m []string) error {
			return x.at(x.generator(m[1]), m[1], "keep one of them", "%s has the key %s twice", m[1], m[2])
		}),
		on(`a configmap must have a name`, func(x *explainer, _ []string) error {
			return x.at(x.generator(""), "", "", "an entry has no name")
		}),
		on(`(?:env source files|literal sources|file sources)\b`, func(x *explainer, _ []string) error {
			return &Error{File: x.k.file, Err: x.say("a generator cannot read one of its literals, files or envs"), Hint: "literals and the lines of envs are written key=value"}
		}),
	}
}

func otherRules(on onText) []explainRule {
	return []explainRule{
		on(`nothing selected by (\S+)`, func(x *explainer, m []string) error {
			return x.at("replacements", "", "", "there is no object %s to take a value from", parseID(m[1]))
		}),
		on(`multiple matches for selector (\S+)`, func(x *explainer, m []string) error {
			return x.at("replacements", "", "", "there are several objects %s to take a value from", parseID(m[1]))
		}),
		on("fieldPath `([^`]*)` is missing for replacement source (\\S+)", func(x *explainer, m []string) error {
			return x.at("replacements", m[1], "", "%s has no field %s to take a value from", parseID(m[2]), m[1])
		}),
		on(`unable to find (?:or create )?field "([^"]*)" in replacement target`, func(x *explainer, m []string) error {
			return x.at("replacements", m[1], "create: true in the options makes it", "a target has no field %s", m[1])
		}),
		on(`(replacements must specify .*|options\.index .*|delimiter option .*)`, func(x *explainer, m []string) error {
			return x.at("replacements", "", "", "%s", brief(m[1]))
		}),
		on(`var '\{(\S+) (\S+) .*cannot be mapped to a field`, func(x *explainer, m []string) error {
			return x.at("vars", m[1], "", "there is no object and field for %s", m[1])
		}),
		on(`found \d+ resId matches for var \{?(\S+)`, func(x *explainer, m []string) error {
			return x.at("vars", m[1], "give its objref a namespace", "there are several objects for %s", m[1])
		}),
		on(`resource with name (\S+) does not match a config`, func(x *explainer, m []string) error {
			return x.at("replicas", m[1], "", "there is no Deployment, StatefulSet or other workload %s", m[1])
		}),
		on(`security; file '([^']*)' is not in or below '([^']*)'`, func(x *explainer, m []string) error {
			return &Error{File: x.k.file, Err: x.say("%s is not in or below the folder of the kustomization", m[1]), Hint: "move it there"}
		}),
		on(`open ([^:\n]*): (?:.*: )?file does not exist`, func(x *explainer, m []string) error {
			return &Error{File: x.k.file, Err: x.say("%s does not exist", m[1])}
		}),
		on(`unable to load builtin (\w+)`, func(x *explainer, m []string) error {
			return &Error{File: x.k.file, Err: x.say("kustomize has no built-in plugin %s", m[1])}
		}),
		on(`plugin (\S+) fails configuration: (.*)`, func(x *explainer, m []string) error {
			return &Error{File: x.k.file, Err: x.say("the plugin %s: %s", parseID(m[1]), brief(m[2]))}
		}),
		on(`the specified OpenAPI version is not built in`, func(x *explainer, _ []string) error {
			return x.at("openapi", "", "take the version away", "kustomize does not have the version %q", x.k.OpenAPI["version"])
		}),
		on(`error unmarshaling JSON: while decoding JSON: json: (.*)`, func(x *explainer, m []string) error {
			what := brief(m[1])
			if t := wrongType.FindStringSubmatch(m[1]); t != nil {
				what = "its " + t[2] + " is a " + t[1]
			}
			return x.at("configurations", "", "", "a file cannot be read: %s", what)
		}),
	}
}

// explainTwice is for an object that two entries of a kustomization bring in.
func explainTwice(x *explainer, m []string) error {
	i := parseID(m[1])
	var places []Origin
	for _, name := range sortedKeys(x.v.sources) {
		for _, s := range x.v.sources[name] {
			if s.kind == i.kind && s.name == i.name && (s.namespace == i.namespace || s.namespace == "") {
				places = append(places, s.at)
			}
		}
	}
	if len(places) > 1 {
		last := places[len(places)-1]
		return &Error{File: last.File, Line: last.Line, Hint: "remove one of them", Err: x.say("%s is there twice, first in %s", i, places[0])}
	}
	from, where := "", x.k.file
	if merging := regexp.MustCompile(`recursed merging from path '([^']*)'`).FindAllStringSubmatch(x.text, -1); len(merging) > 0 {
		_, from = x.entry(merging[len(merging)-1][1])
	}
	e := &Error{File: where, Line: x.k.line("resources", from), Hint: "name what brings it in once"}
	if len(places) == 1 {
		e.Err = x.say("%s of %s comes in twice, the second time by %s", i, places[0], from)
	} else {
		e.Err = x.say("%s comes in twice", i)
	}
	return e
}

// explainConflict is for objects that have the same name in two namespaces until the kustomization gives them the same. The text has the
// whole objects in it.
func explainConflict(x *explainer, m []string) error {
	type object struct {
		Kind     string
		Metadata struct {
			Name        string
			Annotations map[string]string
		}
	}
	var list []object
	if err := json.Unmarshal([]byte(strings.ReplaceAll(m[1], "} {", "},{")), &list); err != nil || len(list) < 2 {
		return x.at("namespace", x.k.Namespace, "", "two objects become the same one in namespace %s", x.k.Namespace)
	}
	place := func(o object) string {
		var from resource.Origin
		if err := yaml.Unmarshal([]byte(o.Metadata.Annotations[originAnnotation]), &from); err != nil || from.Path == "" {
			return x.k.file
		}
		return path.Join(x.v.root, from.Path)
	}
	return x.at("namespace", x.k.Namespace, "rename one of them", "%s/%s of %s and that of %s become the same object in namespace %s",
		list[0].Kind, list[0].Metadata.Name, place(list[0]), place(list[1]), x.k.Namespace)
}
