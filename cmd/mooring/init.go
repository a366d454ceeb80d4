package main

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// startingRepository is what init writes, with the names left open.
//
//go:embed template
var startingRepository embed.FS

// noURL stands in the Moorings when no address was given.
const noURL = "https://git.example.com/you/mesh.git"

// newRepository is what a starting repository is about. Its fields are those that the templates have open.
type newRepository struct {
	App, Namespace, URL string
}

func (c *cli) initCommand() *cobra.Command {
	o := &newRepository{}
	cmd := &cobra.Command{
		Use:     "init [DIR]",
		GroupID: groupFiles,
		Short:   "Write a repository to start from: an application, three environments, and their Moorings",
		Long: `Write a repository to start from into DIR, or into the current folder: one application, what
differs for it in dev, staging and prod, and the Moorings that keep the three on a cluster. What
is written renders and passes mooring check. Nothing that is there is overwritten.

` + exitHelp,
		Example: `  mooring init mesh
  mooring init mesh --app reviews --namespace bookinfo --url ssh://git@git.example.com/mesh/config.git`,
		Args: args(0, 1, "DIR"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeFolders(cmd, args, typed)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.init(o, cmp.Or(strings.Join(args, ""), "."))
		},
	}
	cmd.Flags().StringVar(&o.App, "app", "web", "name of the application and of its Service")
	cmd.Flags().StringVar(&o.Namespace, "namespace", "shop", "the namespaces are this with -dev, -staging and -prod")
	cmd.Flags().StringVar(&o.URL, "url", noURL, "address of the repository that this becomes, as the cluster reaches it")
	return cmd
}

func (c *cli) init(o *newRepository, dir string) error {
	if err := o.validate(); err != nil {
		return err
	}
	files, names, err := o.fill()
	if err != nil {
		return err
	}
	if err := refuseToOverwrite(dir, names); err != nil {
		return err
	}
	var out strings.Builder
	for i, name := range names {
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(name)), files[name]); err != nil {
			if i > 0 {
				err = withHint(err, "these are written already: %s", strings.Join(names[:i], ", "))
			}
			return err
		}
	}
	fmt.Fprintf(&out, "Wrote into %s:\n", dir)
	for _, name := range names {
		fmt.Fprintf(&out, "  %s\n", name)
	}
	out.WriteString("\nNext:\n")
	for _, step := range o.steps(dir) {
		fmt.Fprintf(&out, "  %s\n", step)
	}
	_, err = fmt.Fprint(c.out, out.String())
	return err
}

// validate refuses names that the cluster would.
func (o *newRepository) validate() error {
	for _, v := range []struct{ flag, value, longest string }{
		{"--app", o.App, o.App},
		{"--namespace", o.Namespace, o.Namespace + "-staging"},
	} {
		if faults := validation.IsDNS1035Label(v.longest); len(faults) > 0 {
			return usageErrorf("mooring init", "%s %q makes no name: %s", v.flag, v.value, faults[0])
		}
	}
	if o.URL == "" || strings.ContainsAny(o.URL, " \t\n") {
		return usageErrorf("mooring init", "--url %q is no address of a repository", o.URL)
	}
	return nil
}

// fill gives the content of every file, and their names in order.
func (o *newRepository) fill() (files map[string][]byte, names []string, err error) {
	url, err := yaml.Marshal(o.URL) // quoted where YAML wants it
	if err != nil {
		return nil, nil, err
	}
	open := newRepository{App: o.App, Namespace: o.Namespace, URL: strings.TrimSpace(string(url))}
	files = map[string][]byte{}
	err = fs.WalkDir(startingRepository, "template", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := startingRepository.ReadFile(name)
		if err != nil {
			return err
		}
		t, err := template.New(name).Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var filled bytes.Buffer
		if err := t.Execute(&filled, open); err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "template/")
		files[name], names = filled.Bytes(), append(names, name)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("fill the template: %w", err)
	}
	return files, names, nil
}

// refuseToOverwrite looks at all files before the first one is written.
func refuseToOverwrite(dir string, names []string) error {
	var there []string
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name)))
		switch {
		case err == nil:
			there = append(there, name)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("look at %s: %w", path.Join(dir, name), cause(err))
		}
	}
	if len(there) == 0 {
		return nil
	}
	return withHint(fmt.Errorf("nothing is written to %s: it has %s already", dir, strings.Join(there, ", ")), "name another folder: mooring init DIR")
}

// writeNew writes a file that is not there yet.
func writeNew(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("make folder %s: %w", filepath.Dir(name), cause(err))
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, cause(err))
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// steps are what a first user does next.
func (o *newRepository) steps(dir string) []string {
	var steps []string
	step := func(format string, args ...any) { steps = append(steps, fmt.Sprintf(format, args...)) }
	if dir != "." {
		step("cd %s", dir)
	}
	if _, guessed, err := topOf(dir, ""); err == nil && guessed {
		step("git init -b main")
	}
	step("mooring check overlays/dev        # what would keep it out of the mesh; staging and prod likewise")
	step("mooring render overlays/dev       # the objects that it becomes")
	step("mooring explain                   # what else base/app.yaml can say")
	if o.URL == noURL {
		step("edit moorings/*.yaml              # source.url: where the cluster finds this repository")
	}
	step("git add . && git commit -m \"mesh: %s\" && git push", o.App)
	step("kubectl apply -k moorings         # once, on a cluster that has Mooring (kubectl apply -k deploy in its repository)")
	step("mooring get -n moorings           # what became of it")
	return steps
}
