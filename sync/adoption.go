package sync

import (
	"context"
	"strings"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// adoption is the value of the annotation by which a human lets objects be taken over from other tools: a revision, a space, and the tools with commas
// between them. It counts for that revision, and is taken away when that or another one has come into force. Until then each pass goes on where the one
// before was broken off.
type adoption string

// Adoption is what to write for a revision.
func Adoption(rev repos.Revision, tools []apply.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = string(t)
	}
	return rev.String() + " " + strings.Join(names, ",")
}

// covers gives the tools that the word names for this revision.
func (w adoption) covers(rev repos.Revision) []apply.Tool {
	id, names, _ := strings.Cut(string(w), " ")
	if id == "" || id != rev.String() && id != string(rev.Commit) {
		return nil
	}
	var tools []apply.Tool
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			tools = append(tools, apply.Tool(name))
		}
	}
	return tools
}

// used says whether the word is of no use any more, now that this revision is in force after the one before.
func (w adoption) used(before, now repos.Revision) bool {
	id, _, _ := strings.Cut(string(w), " ")
	return w != "" && (id == now.String() || id == string(now.Commit) || before.Commit != now.Commit)
}

func (p *pass) adoption() adoption {
	return adoption(p.mooring.Annotations[v1alpha1.AdoptAnnotation])
}

// PreviewAdoption is a Preview in which objects are taken over from these tools.
func (s *Syncer) PreviewAdoption(ctx context.Context, m *v1alpha1.Mooring, from []apply.Tool) Outcome {
	return s.preview(ctx, m, from)
}
