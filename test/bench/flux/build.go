package flux

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/world"
)

// module is a module of its own, with the replace lines of the controller's own go.mod: a replacement counts in the main module only, which is why
// `go install` with a version refuses it.
const module = "test/bench/flux/controller"

const controllerPath = "github.com/fluxcd/kustomize-controller"

// The release of source-controller whose GitRepository is installed. Only a file of it is read, so it is no requirement of any module here, and
// its checksum is written down instead of in a go.sum.
const (
	sourceModule = "github.com/fluxcd/source-controller@v1.9.6"
	sourceSum    = "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc="
)

// Binary is a kustomize-controller and what has to be installed for it.
type Binary struct {
	// Path of the executable.
	Path string
	// Version of its module, such as v1.9.6.
	Version string

	crds []string
}

// Build builds kustomize-controller, or finds it in the cache. A first build takes some minutes; progress gets a line every ten seconds.
func Build(ctx context.Context, progress io.Writer) (Binary, error) {
	root, err := world.Root(ctx)
	if err != nil {
		return Binary{}, err
	}
	b := builder{dir: filepath.Join(root, filepath.FromSlash(module)), progress: progress}
	built, err := b.build(ctx)
	if err != nil {
		return Binary{}, fmt.Errorf("build kustomize-controller in %s: %w", module, err)
	}
	return built, nil
}

type builder struct {
	dir      string
	progress io.Writer
}

// downloaded is what go says of a module.
type downloaded struct{ Dir, Version, Sum, Error string }

func (b builder) build(ctx context.Context) (Binary, error) {
	controller, err := b.download(ctx, controllerPath)
	if err != nil {
		return Binary{}, err
	}
	source, err := b.download(ctx, sourceModule)
	if err != nil {
		return Binary{}, err
	}
	if source.Sum != sourceSum {
		return Binary{}, fmt.Errorf("%s has the checksum %s, not %s", sourceModule, source.Sum, sourceSum)
	}
	built := Binary{Version: controller.Version, crds: []string{
		filepath.Join(controller.Dir, "config", "crd", "bases", "kustomize.toolkit.fluxcd.io_kustomizations.yaml"),
	}}
	// It watches these three kinds, whether there are objects of them or not.
	for _, kind := range []string{"buckets", "gitrepositories", "ocirepositories"} {
		built.crds = append(built.crds, filepath.Join(source.Dir, "config", "crd", "bases", "source.toolkit.fluxcd.io_"+kind+".yaml"))
	}
	built.Path, err = b.compile(ctx)
	return built, err
}

func (b builder) download(ctx context.Context, what string) (downloaded, error) {
	var d downloaded
	out, err := kube.NestedGo(ctx, b.dir, "mod", "download", "-json", what).Output()
	if json.Unmarshal(out, &d) == nil && d.Error != "" {
		return d, errors.New(d.Error)
	}
	if err != nil {
		return d, fmt.Errorf("download %s: %w", what, err)
	}
	return d, nil
}

// compile links into a file with a name of its own and renames it, so that two who build at once do not disturb each other.
func (b builder) compile(ctx context.Context) (string, error) {
	cache, err := kube.CacheDir()
	if err != nil {
		return "", err
	}
	key, err := b.key()
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, "kustomize-controller-"+key)
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(cache, "building-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }()
	file := filepath.Join(part, "kustomize-controller")
	cmd := kube.NestedGo(ctx, b.dir, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, controllerPath)
	if out, err := world.Tell(b.progress, "kustomize-controller: building, once", cmd); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(out))
	}
	return target, os.Rename(file, target)
}

// key is of all that decides what is built.
func (b builder) key() (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH) // a hash never fails
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			return "", err
		}
		_, _ = sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}
