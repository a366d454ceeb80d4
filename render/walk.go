package render

import (
	"math"
	"slices"

	"sigs.k8s.io/kustomize/api/types"
)

// cost is what a kustomization amounts to with all that it uses, counting what it uses twice twice, as kustomize does: a tree of bases
// that use a base twice each would else be a bomb.
type cost struct {
	objects int // at most
	visits  int // of kustomizations
}

// walk goes through all that the root kustomization names, before kustomize does, and collects the faults.
func (v *vetter) walk() error {
	c := v.visit(v.root, nil)
	if v.tree.broken != nil {
		return v.tree.broken
	}
	if err := v.faults.join(); err != nil {
		return err
	}
	if c.objects > v.tree.limits.Objects {
		return tooMany(v.tree.limits.Objects)
	}
	if c.visits > v.tree.limits.Files {
		return fault("", 0, "use fewer", "kustomizations are used more than %d times", v.tree.limits.Files)
	}
	return nil
}

// visit goes through the kustomization of a folder, once. users are the folders that lead to it.
func (v *vetter) visit(dir string, users []string) cost {
	if c, ok := v.costs[dir]; ok {
		return c
	}
	c := cost{visits: 1}
	k := v.open(dir)
	if k == nil {
		return c
	}
	c.objects = len(k.ConfigMapGenerator) + len(k.SecretGenerator)
	users = append(slices.Clip(users), dir)
	for _, r := range k.found {
		if v.tree.broken != nil {
			return c
		}
		if r.folder {
			c = c.plus(v.follow(k, r, users))
		} else {
			c = c.plus(v.look(r))
		}
	}
	v.costs[dir] = c
	return c
}

// open reads the kustomization of a folder; nil when it cannot.
func (v *vetter) open(dir string) *kustomization {
	name, err := v.tree.kustomizationIn(dir)
	if err != nil || name == "" {
		v.faults.add(err)
		return nil
	}
	real, err := v.tree.resolve(name)
	if err != nil {
		v.faults.add(err)
		return nil
	}
	f, err := v.tree.read(real)
	if err != nil {
		v.faults.add(err)
		return nil
	}
	v.isKustomizationOf(real, dir)
	k, err := v.kustomization(f, dir)
	v.faults.add(err)
	return k
}

// follow visits a folder that a kustomization names.
func (v *vetter) follow(k *kustomization, r found, users []string) cost {
	bad := func(hint, format string, args ...any) {
		v.faults.add(fault(k.file, k.line(r.field, r.value), hint, r.field+": "+format, args...))
	}
	if slices.Contains(users, r.real) {
		bad("", "%s goes in a circle: it leads back to %s", r.value, r.real)
		return cost{}
	}
	if len(users) > v.tree.limits.Depth {
		bad("", "more than %d kustomizations lead to one another", v.tree.limits.Depth)
		return cost{}
	}
	c := v.visit(r.real, users)
	used := v.read[r.real]
	switch {
	case used == nil:
	case r.field == "components" && used.Kind != types.ComponentKind:
		bad("name it under resources, or make it one", "%s is not a Component", r.value)
	case r.field != "components" && used.Kind == types.ComponentKind:
		bad("name it under components", "%s is a Component", r.value)
	}
	return c
}

// look examines a file that a kustomization names, for that use. It is told once.
func (v *vetter) look(r found) cost {
	f, err := v.tree.read(r.real)
	if err != nil {
		v.faults.add(err)
		return cost{}
	}
	_, known := v.verdicts[verdictKey{r.real, r.use}]
	if err := v.suits(f, r.use); !known {
		v.faults.add(err)
	}
	if r.use&useResource == 0 {
		return cost{}
	}
	return cost{objects: len(v.sources[r.real])}
}

// plus does not overflow.
func (c cost) plus(d cost) cost {
	const most = math.MaxInt / 2
	return cost{objects: min(c.objects+d.objects, most), visits: min(c.visits+d.visits, most)}
}
