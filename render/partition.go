package render

import (
	"crypto/sha256"
	"encoding/binary"
)

// sizes say how a build is divided.
type sizes struct {
	// worth is how many objects a build must have, or more, to be divided; below 0, none is.
	worth int
	// A part ends after few objects or more, where a hash says so, and at the latest before it has more than many. As the hash is that of
	// what an object is called, an object that comes or goes does not move the ends of the parts after it, which so can be kept.
	few, many int
	// documents is how many a file must have, or more, for what is in each of them to be kept: to parse a few anew takes less than to keep them.
	documents int
}

// orDefault fills in what is zero. A build of n objects takes about n * 0.5 ms + n * n * 1.5 µs.
func (s sizes) orDefault() sizes {
	if s == (sizes{}) {
		return sizes{worth: 8, few: 20, many: 100, documents: 64}
	}
	return s
}

// join finds what has to be in one part: objects that refer to others by name and namespace, and all that they may refer to, because what is in
// question is called as some text in them, or in a patch that may become one in them.
func (d *division) join() {
	if !d.remembers {
		return
	}
	targets := map[string][]int{}
	root := d.byDir[d.v.root]
	for i := range root.members {
		if m := &root.members[i]; m.gvk.Kind == "ServiceAccount" || m.gvk.Kind == "Service" {
			targets[m.now.name] = append(targets[m.now.name], m.leaf)
		}
	}
	var common []int
	for _, text := range d.patchTexts {
		common = append(common, targets[text]...)
	}
	for i, l := range d.leaves {
		if len(l.texts) == 0 {
			continue
		}
		for _, t := range common {
			d.unite(i, t)
		}
		for _, text := range l.texts {
			for _, t := range targets[text] {
				d.unite(i, t)
			}
		}
	}
}

// leader finds the leaf that stands for all that one is joined with.
func (d *division) leader(i int) int {
	for d.leaves[i].joined != i {
		d.leaves[i].joined = d.leaves[d.leaves[i].joined].joined
		i = d.leaves[i].joined
	}
	return i
}

// unite joins two leaves under the first of them.
func (d *division) unite(a, b int) {
	a, b = d.leader(a), d.leader(b)
	d.leaves[max(a, b)].joined = min(a, b)
}

// parts gives the leaves of each part.
func (d *division) parts() [][]int {
	groups := make([][]int, len(d.leaves))
	for i := range d.leaves {
		groups[d.leader(i)] = append(groups[d.leader(i)], i)
	}
	var parts [][]int
	var part []int
	objects := 0
	end := func() {
		if len(part) > 0 {
			parts = append(parts, part)
		}
		part, objects = nil, 0
	}
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		uses := 0
		for _, n := range group {
			uses += d.leaves[n].uses
		}
		if objects+uses > d.v.tree.sizes.many {
			end()
		}
		part, objects = append(part, group...), objects+uses
		if objects >= d.v.tree.sizes.few && d.leaves[i].hash()%uint64(d.v.tree.sizes.few) == 0 {
			end()
		}
	}
	end()
	return parts
}

// hash is the same for as long as a document is where it is and its first object is called what it is called.
func (l *leaf) hash() uint64 {
	sum := sha256.Sum256([]byte(l.file + "\n" + l.first.kind + "\n" + l.first.namespace + "\n" + l.first.name))
	return binary.BigEndian.Uint64(sum[:])
}
