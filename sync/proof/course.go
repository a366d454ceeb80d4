package proof

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

const networkingGroup = "networking.istio.io"

// routed are the kinds that routes and clusters are made of.
var routed = map[schema.GroupKind]bool{
	{Kind: "Service"}: true,
	{Group: networkingGroup, Kind: "VirtualService"}:  true,
	{Group: networkingGroup, Kind: "DestinationRule"}: true,
	{Group: networkingGroup, Kind: "Gateway"}:         true,
	{Group: networkingGroup, Kind: "ServiceEntry"}:    true,
	{Group: networkingGroup, Kind: "WorkloadEntry"}:   true,
	{Group: networkingGroup, Kind: "Sidecar"}:         true,
	{Group: networkingGroup, Kind: "EnvoyFilter"}:     true,
}

// placed are the kinds that say where gateways run. They make no route.
var placed = map[schema.GroupKind]bool{
	{Kind: "Pod"}:                        true,
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
	{Group: "apps", Kind: "StatefulSet"}: true,
}

// course is a plan as the proxies of the mesh live through it.
type course struct {
	live *world.Cluster
	// begin are the objects before the plan, and still those of them that no write touches.
	begin objects
	// worlds are the objects, of routed and placed kinds, before the plan and after each wave: what tells the proxies apart.
	worlds    []objects
	stretches []stretch
	unread    map[schema.GroupKind]string
}

// objects of a mesh at one moment.
type objects map[render.ID]*unstructured.Unstructured

// stretch is a part of a plan in which nothing waits for the proxies.
type stretch struct {
	writes []write
	// after[i] are the writes that writes[i] never comes without: earlier ones of the same kind and of an earlier wave, or of the same object.
	after []set
}

// write is one change of one object that proxies are told of.
type write struct {
	Write

	wave int
	// object from now on; nil when it is gone.
	object *unstructured.Unstructured
}

func newCourse(plan *apply.Plan, live *world.Cluster) *course {
	c := &course{live: live, begin: objects{}, unread: map[schema.GroupKind]string{}}
	for _, u := range live.Objects {
		id := render.IDOf(u)
		if gk := id.GroupKind(); routed[gk] && !live.MetadataOnly[gk] || placed[gk] {
			c.begin[id] = u
		}
	}
	for gk, why := range live.Unread {
		if routed[gk] {
			c.unread[gk] = why
		}
	}
	now := c.begin.copied()
	c.worlds = append(c.worlds, c.begin)
	var part []write
	for i, wave := range plan.Waves {
		for _, step := range wave.Steps {
			for _, w := range now.writes(step, Write{ID: step.ID, Action: step.Action, Wave: wave.Name}) {
				w.wave = i
				now.take(w)
				if routed[w.ID.GroupKind()] {
					part = append(part, w)
				}
			}
		}
		c.worlds = append(c.worlds, now.copied())
		if wave.Gate == apply.GatePropagated {
			c.cut(part)
			part = nil
		}
	}
	c.cut(part)
	return c
}

// cut ends a stretch.
func (c *course) cut(writes []write) {
	if len(writes) == 0 {
		return
	}
	s := stretch{writes: writes}
	for i, w := range writes {
		before := newSet(len(writes))
		for k, earlier := range writes[:i] {
			if earlier.ID == w.ID || earlier.ID.GroupKind() == w.ID.GroupKind() && earlier.wave < w.wave {
				before.add(k)
			}
		}
		s.after = append(s.after, before)
	}
	c.stretches = append(c.stretches, s)
}

// writes of all stretches.
func (c *course) writes() int {
	n := 0
	for _, s := range c.stretches {
		n += len(s.writes)
	}
	return n
}

// after the plan, the objects that routes and clusters are made of.
func (c *course) after() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for id, u := range c.worlds[len(c.worlds)-1] {
		if routed[id.GroupKind()] {
			out = append(out, u)
		}
	}
	return out
}

func (o objects) copied() objects {
	out := make(objects, len(o))
	for id, u := range o {
		out[id] = u
	}
	return out
}

func (o objects) take(w write) {
	if w.object == nil {
		delete(o, w.ID)
	} else {
		o[w.ID] = w.object
	}
}

// writes of a step, as far as they change what proxies are told. A namespace takes along what is in it.
func (o objects) writes(step apply.Step, name Write) []write {
	if step.ID.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) && step.Action == apply.Delete {
		var all []write
		for id := range o {
			if id.Namespace == step.ID.Name {
				all = append(all, write{Write: Write{ID: id, Action: apply.Delete, Wave: name.Wave}})
			}
		}
		return sorted(all)
	}
	if gk := step.ID.GroupKind(); !routed[gk] && !placed[gk] {
		return nil
	}
	lives, form := o[step.ID], step.Form()
	switch {
	case step.Action == apply.Delete && lives != nil:
		return []write{{Write: name}}
	case form == nil || step.Action == apply.Unchanged || step.Action == apply.Delete:
		return nil // it is let go, skipped, or not there
	case step.Action == apply.Replace && lives != nil:
		return []write{{Write: name}, {Write: name, object: form}}
	case lives == nil:
		return []write{{Write: name, object: form}}
	}
	after := step.After()
	if after == nil {
		after = overlay(lives, form, step.Diff)
	}
	if sameForProxies(lives, after) {
		return nil
	}
	return []write{{Write: name, object: after}}
}

// overlay is what lives once the form is applied. What the form does not say stays where a difference says that all else is right.
func overlay(lives, form *unstructured.Unstructured, diff []apply.FieldDiff) *unstructured.Unstructured {
	out := lives.DeepCopy()
	out.SetAPIVersion(form.GetAPIVersion())
	out.SetLabels(merged(lives.GetLabels(), form.GetLabels(), diff, "/metadata/labels/"))
	out.SetAnnotations(merged(lives.GetAnnotations(), form.GetAnnotations(), diff, "/metadata/annotations/"))
	spec, ok := form.Object["spec"].(map[string]any)
	if !ok {
		return out
	}
	old, _ := out.Object["spec"].(map[string]any)
	for key, value := range old {
		if _, said := spec[key]; !said && len(diff) > 0 && !names(diff, "/spec/"+escape(key)) {
			spec[key] = value
		}
	}
	out.Object["spec"] = spec
	return out
}

// merged labels or annotations.
func merged(lives, form map[string]string, diff []apply.FieldDiff, path string) map[string]string {
	out := map[string]string{}
	for key, value := range lives {
		if !names(diff, path+escape(key)) {
			out[key] = value
		}
	}
	for key, value := range form {
		out[key] = value
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// names says whether a difference is about the field or something in it.
func names(diff []apply.FieldDiff, path string) bool {
	for _, d := range diff {
		if d.Path == path || strings.HasPrefix(d.Path, path+"/") || strings.HasPrefix(path, d.Path+"/") {
			return true
		}
	}
	return false
}

// escape a key as a JSON pointer does.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// sameForProxies compares what istiod reads.
func sameForProxies(a, b *unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(a.Object["spec"], b.Object["spec"]) &&
		equality.Semantic.DeepEqual(a.GetLabels(), b.GetLabels()) &&
		equality.Semantic.DeepEqual(a.GetAnnotations(), b.GetAnnotations())
}
