package render

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
)

// part is one part of a divided build: all that kustomize gets to see of it.
type part struct {
	files map[string][]byte // by path in the tree
	key   partKey           // a hash of all of it
}

// cutter makes parts of a division.
type cutter struct {
	*division
	parents  map[string][]step // of a file or folder: which entries lead to it
	patches  map[int][]step    // of a leaf: which patches concern it
	replicas map[int][]step
}

// step is the place of something in the list of a level.
type step struct{ level, index int }

func newCutter(d *division) *cutter {
	c := &cutter{division: d, parents: map[string][]step{}, patches: map[int][]step{}, replicas: map[int][]step{}}
	for n, l := range d.levels {
		for i, e := range l.entries {
			c.parents[e.real] = append(c.parents[e.real], step{n, i})
		}
		for i, p := range l.patches {
			for _, leaf := range p.leaves {
				c.patches[leaf] = append(c.patches[leaf], step{n, i})
			}
		}
		for i, r := range l.replicas {
			for _, leaf := range r.leaves {
				c.replicas[leaf] = append(c.replicas[leaf], step{n, i})
			}
		}
	}
	return c
}

// share is what a part gets of one level: indices of its lists.
type share struct{ entries, patches, replicas []int }

// part puts together what kustomize needs for some leaves.
func (c *cutter) part(leaves []int) (*part, error) {
	p := &part{files: map[string][]byte{}}
	shares := map[int]*share{}
	of := func(level int) *share {
		if shares[level] == nil {
			shares[level] = &share{}
		}
		return shares[level]
	}
	var ways []string                                        // files and folders whose users are still to be found
	for _, n := range slices.Sorted(slices.Values(leaves)) { // as they are in their files
		l := &c.leaves[n]
		if _, ok := p.files[l.file]; !ok {
			ways = append(ways, l.file)
		}
		content := c.v.tree.files[l.file].content[l.at : l.at+l.size]
		p.files[l.file] = append(p.files[l.file], content...)
		for _, s := range c.patches[n] {
			of(s.level).patches = append(of(s.level).patches, s.index)
		}
		for _, s := range c.replicas[n] {
			of(s.level).replicas = append(of(s.level).replicas, s.index)
		}
	}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, s := range c.parents[way] {
			if l := of(s.level); len(l.entries) == 0 {
				ways = append(ways, c.levels[s.level].dir)
			}
			of(s.level).entries = append(of(s.level).entries, s.index)
		}
	}
	for n, s := range shares {
		if err := c.levels[n].serve(p, s); err != nil {
			return nil, err
		}
	}
	p.sum(c.v.root)
	return p, nil
}

// errOdd ends a divided build: the undivided one is what counts.
var errOdd = errors.New("it cannot be divided")

// serve writes the kustomization of a level with a share of its lists.
func (l *level) serve(p *part, s *share) error {
	fields := make(map[string]any, len(l.base)+4)
	for name, text := range l.base {
		fields[name] = text
	}
	var resources []string
	for _, i := range once(s.entries) {
		r := relative(l.dir, l.entries[i].real)
		if remote(r) {
			return errOdd
		}
		resources = append(resources, r)
	}
	fields["resources"] = resources
	var replicas []any
	for _, i := range once(s.replicas) {
		replicas = append(replicas, l.replicas[i].Replica)
	}
	if replicas != nil {
		fields["replicas"] = replicas
	}
	lists := map[string][]any{}
	for _, i := range once(s.patches) {
		one := &l.patches[i]
		name := fmt.Sprintf(".%s-%d", one.field, i)
		if err := p.add(path.Join(l.dir, name), one.content); err != nil {
			return err
		}
		if one.field == "patchesStrategicMerge" {
			lists[one.field] = append(lists[one.field], name)
			continue
		}
		entry := one.entry
		entry.Path = name
		lists[one.field] = append(lists[one.field], entry)
	}
	for field, list := range lists {
		fields[field] = list
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return p.add(path.Join(l.dir, "kustomization.yaml"), text)
}

// add refuses to write over another file.
func (p *part) add(name string, content []byte) error {
	if _, ok := p.files[name]; ok {
		return errOdd
	}
	p.files[name] = content
	return nil
}

// sum hashes what kustomize sees: the folder that it builds, and every file.
func (p *part) sum(root string) {
	h := sha256.New()
	write := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		_, _ = h.Write(n[:]) // it has no error
		_, _ = h.Write(b)
	}
	write([]byte(root))
	for _, name := range sortedKeys(p.files) {
		write([]byte(name))
		write(p.files[name])
	}
	h.Sum(p.key[:0])
}

// once sorts indices and leaves out those that are there again.
func once(indices []int) []int {
	slices.Sort(indices)
	return slices.Compact(indices)
}

// relative gives the way from a folder to something else in the tree.
func relative(dir, to string) string {
	from, steps := split(dir), split(to)
	for len(from) > 0 && len(steps) > 0 && from[0] == steps[0] {
		from, steps = from[1:], steps[1:]
	}
	return path.Join(strings.Repeat("../", len(from)), path.Join(steps...))
}

// build runs kustomize over a part. It may be called in many goroutines.
func (p *part) build(v *vetter, stop func() error) (objects []*Content, err error) {
	defer caught(&err, v.root)
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(newPartFS(p.files, stop), outside(v.root))
	if err != nil {
		return nil, err
	}
	for _, r := range m.Resources() {
		o, err := v.result(r, Origin{})
		if err != nil {
			return nil, err
		}
		if refersOddly(o) {
			return nil, errOdd
		}
		objects = append(objects, o.Content)
	}
	return objects, nil
}

// refersOddly says whether an object has a mapping where kustomize looks for a name that refers to another object. It would then look for a
// namespace too, as it does in the kinds that are built together with what they refer to.
func refersOddly(o Object) bool {
	switch o.GetKind() {
	case "HorizontalPodAutoscaler", "Pod", "PodTemplate", "Deployment", "ReplicaSet", "ReplicationController", "DaemonSet", "StatefulSet", "Job", "CronJob",
		"Ingress", "ServiceAccount", "StorageClass", "Role", "ClusterRole", "PersistentVolume", "PersistentVolumeClaim", "APIService", "Service", "ValidatingAdmissionPolicyBinding":
		return hasOddName(o.Unstructured().Object)
	case "Node":
		return true // it refers to a ConfigMap in that way
	default:
		return false
	}
}

// hasOddName looks for a name that is a mapping, or a list with one, under any of the keys that end a path in kustomize's nameReference configuration.
func hasOddName(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			switch key {
			case "name", "secretName", "adminSecretName", "userSecretName", "claimName", "serviceName", "serviceAccountName", "storageClassName",
				"volumeName", "priorityClassName", "ingressClassName", "policyName", "resourceNames":
				if holdsMapping(e) {
					return true
				}
			case "annotations":
				if m, ok := e.(map[string]any); ok && slices.ContainsFunc(slices.Collect(maps.Values(m)), holdsMapping) {
					return true
				}
			case "parameters":
				if m, ok := e.(map[string]any); ok && holdsMapping(m["secretRef"]) {
					return true
				}
			}
			if hasOddName(e) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasOddName)
	}
	return false
}

func holdsMapping(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsMapping)
	default:
		return false
	}
}
