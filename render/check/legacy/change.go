package legacy

// Change is one retired field and what takes its place.
type Change struct {
	// Path of the field, as in spec.http[0].mirrorPercent.
	Path string
	// Message says what is wrong with it, Mend what it is called today.
	Message, Mend string
	// Broken says that the proxies do not do what is written; otherwise the field still works.
	Broken bool
	// Unknown says that the field is no longer in Istio's definitions, so that strict decoding refuses it.
	Unknown bool
	// Exact says that [Rewrite] writes it; Why says why not.
	Exact bool
	Why   string

	edits []edit
}

// edit is one change to a tree of YAML. A path is a list of keys and indexes.
type edit struct {
	// from is what goes; nil when something is only written.
	from []any
	// to is where value, or else what was at from, is put; nil when something only goes.
	to    []any
	value any
	// list puts it as the only item of a list.
	list bool
}

// find the value at a path of a tree; nil when there is none.
func find(tree any, path ...any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := tree.(map[string]any)
			tree = m[s]
		case int:
			l, _ := tree.([]any)
			if s >= len(l) {
				return nil
			}
			tree = l[s]
		}
	}
	return tree
}

// has says whether a mapping has the key, be its value null.
func has(tree any, key string) bool {
	m, _ := tree.(map[string]any)
	_, ok := m[key]
	return ok
}

func below(path []any, more ...any) []any {
	return append(append(make([]any, 0, len(path)+len(more)), path...), more...)
}
