package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"

	"github.com/mooring-dev/mooring/test/kube"
)

// module is Gitea's. Its binary is the module's root.
const module = "code.gitea.io/gitea"

// Binary is a built Gitea, and the folder that its templates and locales are in, which it reads when it starts.
type Binary struct {
	Path, Static string
	// Version, such as 1.25.5.
	Version string
}

// Build gives Gitea's binary, and builds it first when the cache does not hold it: five minutes on two cores; see [kube.Recipe].
func Build(ctx context.Context, progress io.Writer) (Binary, error) {
	src, err := kube.NestedModule("gitea", "server")
	if err != nil {
		return Binary{}, err
	}
	// Downloads what is missing, also where the binary is in the cache and the module no longer is.
	out, err := kube.NestedGo(ctx, src, "mod", "download", "-json", module).Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%w: %s%s", err, out, exit.Stderr)
		}
		return Binary{}, fmt.Errorf("download Gitea's module: %w", err)
	}
	var found struct{ Dir, Version string }
	if err := json.Unmarshal(out, &found); err != nil {
		return Binary{}, fmt.Errorf("download Gitea's module: %w", err)
	}
	version := found.Version[1:]
	path, err := kube.Recipe{
		Name: "gitea", What: "Gitea " + version, Source: src, Package: module,
		// Without the version it calls itself "development", and clients cannot tell what it can do.
		Flags: []string{"-buildvcs=false", "-tags=sqlite sqlite_unlock_notify", "-ldflags=-s -w -X main.Version=" + version},
	}.Build(ctx, progress)
	return Binary{Path: path, Static: found.Dir, Version: version}, err
}
