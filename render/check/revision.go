package check

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// revisionLabel chooses the control plane whose proxy is injected.
const revisionLabel = "istio.io/rev"

// invalidRevision finds revisions that no control plane can have: revisions are DNS labels, so 1.31 is called 1-31
// (https://istio.io/latest/docs/setup/upgrade/canary/). Nothing refuses the label, and nothing injects the proxy.
var invalidRevision = rule{
	Rule: Rule{
		Code: "MOOR013", Level: Warning,
		Title: "no control plane can have this revision",
		Mend:  "write the name of a revision or of a revision tag",
	},
	check: func(s *subject) []problem {
		var ps []problem
		for _, meta := range s.metadata() {
			labels, _ := meta.content["labels"].(map[string]any)
			rev, _ := labels[revisionLabel].(string)
			if rev == "" || len(validation.IsDNS1123Label(rev)) == 0 {
				continue
			}
			p := problem{
				Field:   join(meta.path, "labels") + "[" + revisionLabel + "]",
				Message: "no control plane can have the revision " + quoteShort(rev) + ": a revision is a DNS label",
			}
			if near := strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(rev)); len(validation.IsDNS1123Label(near)) == 0 {
				p.Mend = "did you mean " + quoteShort(near) + "?"
			}
			ps = append(ps, p)
		}
		return ps
	},
}
