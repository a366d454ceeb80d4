package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync"
)

type renderOptions struct {
	root   string
	output string
	origin bool
}

func (c *cli) renderCommand() *cobra.Command {
	o := &renderOptions{}
	cmd := &cobra.Command{
		Use:     "render PATH",
		GroupID: groupFiles,
		Short:   "Print the objects that a folder stands for, as the agent would see them",
		Long: `Print the objects that a folder stands for: a kustomization is built, any other folder is
read as plain YAML. They are sorted by group, kind, namespace and name. No cluster is needed.

` + worktreeHelp + "\n\n" + exitHelp,
		Example: `  mooring render overlays/prod
  mooring render overlays/prod --with-origin | less
  diff <(mooring render overlays/staging) <(mooring render overlays/prod)`,
		Args:              args(1, 1, "PATH"),
		ValidArgsFunction: completeFolders,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.render(cmd.Context(), o, args[0]) },
	}
	cmd.Flags().StringVar(&o.root, "root", "", "the root of the repository; default is the nearest folder above PATH with a .git")
	cmd.Flags().BoolVar(&o.origin, "with-origin", false, "write above each object the file and line that it comes from (with -o yaml)")
	addOutputFlag(cmd, &o.output, outputYAML, outputJSON)
	_ = cmd.MarkFlagDirname("root")
	return cmd
}

func (c *cli) render(ctx context.Context, o *renderOptions, path string) error {
	if o.origin && o.output != outputYAML {
		return usageErrorf("mooring render", "--with-origin needs -o yaml: JSON has no comments")
	}
	set, err := renderPath(ctx, path, o.root)
	if err != nil {
		return err
	}
	color := paletteFor(c.color, c.errOut, c.getenv)
	for _, w := range set.Warnings {
		_, _ = fmt.Fprintln(c.errOut, color.yellow("warning: "+oneLine(w.String())))
	}
	if len(set.Objects) == 0 {
		_, _ = fmt.Fprintf(c.errOut, "There is no object in %s.\n", path)
	}
	if o.output == outputJSON {
		items := make([]runtime.Object, len(set.Objects))
		for i, object := range set.Objects {
			items[i] = object.Unstructured()
		}
		return writeJSON(c.out, listOf(items))
	}
	for i, object := range set.Objects {
		text, err := yaml.Marshal(object.Unstructured().Object)
		if err != nil {
			return fmt.Errorf("print %s: %w", object.ID(), err)
		}
		var above strings.Builder
		if i > 0 {
			above.WriteString("---\n")
		}
		if o.origin && object.Origin.File != "" {
			above.WriteString("# " + object.Origin.String())
			if object.From != (render.ID{}) {
				above.WriteString(" (from " + object.From.String() + ")")
			}
			above.WriteString("\n")
		}
		if _, err := fmt.Fprintf(c.out, "%s%s", above.String(), text); err != nil {
			return err
		}
	}
	return nil
}

// renderPath renders a folder of a work tree.
func renderPath(ctx context.Context, path, root string) (*render.Set, error) {
	tree, err := openWorktree(path, root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tree.root.Close() }()
	set, err := sync.NewRenderer().Render(ctx, tree.root.FS(), tree.path)
	if err != nil {
		return nil, tree.explain(renderError(path, err))
	}
	return set, nil
}

// renderError puts several faults below each other, each with its file first so that editors find it.
func renderError(path string, err error) error {
	faults := render.Errors(err)
	if len(faults) < 2 {
		return fmt.Errorf("render %s: %w", path, err)
	}
	return fmt.Errorf("render %s: %s\n%w", path, plural(len(faults), "fault"), err)
}
