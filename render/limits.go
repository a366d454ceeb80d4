package render

import (
	"cmp"
	"time"
)

// Limits bound what one render may cost. A field that is zero has its default, so that the zero Limits is [DefaultLimits].
type Limits struct {
	// Files that are read, each counted once; also how often kustomizations may be used, where one that two use counts twice, with
	// all that it uses itself, because kustomize works that often.
	Files int
	// Bytes of all files together, each counted once: what is kept in memory while it renders.
	Bytes int64
	// FileBytes of any one file; also what a file may grow to when its YAML aliases are written out.
	FileBytes int64
	// Objects that are read from files or come out in the end. The time of a build that cannot be divided grows with their square.
	Objects int
	// OutputBytes of all the objects in the end, as JSON.
	OutputBytes int64
	// Depth of nested YAML, in levels.
	Depth int
	// Timeout of one build, from the moment that it starts; waiting for other builds is not part of it.
	Timeout time.Duration
}

// DefaultLimits are far above what a mesh of a few thousand services needs, and low enough that one repository does not take the
// memory of the agent (a pod of some hundred MiB to a GiB) from the others.
func DefaultLimits() Limits {
	return Limits{
		Files:       20_000,
		Bytes:       128 << 20,
		FileBytes:   16 << 20,
		Objects:     20_000,
		OutputBytes: 256 << 20,
		Depth:       200,
		Timeout:     5 * time.Minute,
	}
}

// orDefault fills in what is zero.
func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		Files:       cmp.Or(l.Files, d.Files),
		Bytes:       cmp.Or(l.Bytes, d.Bytes),
		FileBytes:   cmp.Or(l.FileBytes, d.FileBytes),
		Objects:     cmp.Or(l.Objects, d.Objects),
		OutputBytes: cmp.Or(l.OutputBytes, d.OutputBytes),
		Depth:       cmp.Or(l.Depth, d.Depth),
		Timeout:     cmp.Or(l.Timeout, d.Timeout),
	}
}
