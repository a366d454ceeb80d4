package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// explain says in a sentence what kustomize says in a chain.
func explain(v *vetter, err error) error {
	text := strings.ReplaceAll(err.Error(), mount+"/", "")
	if i := strings.LastIndex(text, "': "); i >= 0 {
		text = text[i+3:]
	}
	return &Error{File: path.Join(v.root, "kustomization.yaml"), Err: &told{strings.TrimSpace(text), err}}
}

var _ = errors.New
var _ = fmt.Sprint
