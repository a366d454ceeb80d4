package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	istio "istio.io/istio/operator/pkg/render"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Panic is a panic of Istio's or Helm's that was made an error. It is found with errors.As; its stack is for logs.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what the panic said.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// generated is what comes out of Istio's library.
type generated struct {
	objects  []*unstructured.Unstructured
	warnings []string
	err      error
}

// generate gives the objects of an installation, sorted by ID, and what Istio says about it. Istio cannot be interrupted, so it runs in a goroutine of its own:
// when ctx is done, it is left alone and ends by itself a moment later.
func generate(ctx context.Context, operator map[string]any) ([]*unstructured.Unstructured, []string, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(operator)
	if err != nil {
		return nil, nil, err
	}
	result := make(chan generated, 1)
	go func() { result <- run(text) }()
	select {
	case g := <-result:
		return g.objects, g.warnings, g.err
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

func run(operator []byte) (g generated) {
	defer func() {
		if p := recover(); p != nil {
			g = generated{err: &Panic{Value: p, Stack: debug.Stack()}}
		}
	}()
	name, done, err := pipe(operator)
	if err != nil {
		return generated{err: err}
	}
	defer done()
	var heard listener
	sets, _, err := istio.GenerateManifest([]string{name}, nil, false, nil, &heard)
	if err != nil {
		return generated{err: err}
	}
	for _, set := range sets {
		for _, m := range set.Manifests {
			g.objects = append(g.objects, m.Unstructured)
		}
	}
	// The sets come in the order of a map.
	slices.SortStableFunc(g.objects, byID)
	slices.Sort(heard.warnings)
	g.warnings = slices.Compact(heard.warnings)
	return g
}

// pipe gives a name under which the text can be read once. Istio takes nothing but the names of files, and a file on a disk would need a disk that can be
// written to, and somebody who removes it whatever happens.
func pipe(text []byte) (name string, done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("hand over the IstioOperator: %w", err)
	}
	go func() {
		_, _ = w.Write(text) // it fails when nobody wants to read: then Istio has failed, and says why
		_ = w.Close()
	}()
	return fmt.Sprintf("/dev/fd/%d", r.Fd()), func() { _ = r.Close() }, nil
}

// listener takes note of warnings. It implements Istio's clog.Logger.
type listener struct {
	warnings []string
}

func (l *listener) hear(text string) {
	if text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "❗")); text != "" {
		l.warnings = append(l.warnings, text)
	}
}

func (l *listener) LogAndPrint(v ...any)            { l.hear(fmt.Sprint(v...)) }
func (l *listener) LogAndError(v ...any)            { l.hear(fmt.Sprint(v...)) }
func (l *listener) LogAndFatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (l *listener) LogAndPrintf(f string, v ...any) { l.hear(fmt.Sprintf(f, v...)) }
func (l *listener) LogAndErrorf(f string, v ...any) { l.hear(fmt.Sprintf(f, v...)) }
func (l *listener) LogAndFatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (l *listener) Print(s string)                  { l.hear(s) }
func (l *listener) PrintErr(s string)               { l.hear(s) }
