package render

import (
	"fmt"
	"io"
	"log"
	"runtime"
	"runtime/debug"
	"strings"
)

// Panic is a panic of a library that was made an error. It is found with errors.As; its stack is for logs.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what the panic said.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// caught makes a panic an error at a file. It is deferred.
func caught(err *error, name string) {
	if p := recover(); p != nil {
		*err = &Error{
			File: name,
			Err:  &told{"a library failed in a way that it should not", &Panic{Value: p, Stack: debug.Stack()}},
			Hint: "see whether kustomize build or kubectl do too, and report it to their project",
		}
	}
}

// kustomize ends the whole process with log.Fatal where other libraries panic: for one, when a ConfigMap that a generator merges with
// has an empty key. log.Fatal writes its message before it exits, so a writer that panics turns it into a panic, which run recovers
// from as from any other.
//
// The standard logger belongs to the process, so this is done to it at the beginning of every build and never taken back: another
// build may be running. Everything else that is logged goes where it went before.

// fatalGuard is the writer.
type fatalGuard struct {
	next io.Writer
}

func guardLog() {
	if _, ok := log.Writer().(fatalGuard); !ok {
		log.SetOutput(fatalGuard{log.Writer()})
	}
}

// Write passes the message on, unless it is kustomize's last.
func (g fatalGuard) Write(p []byte) (int, error) {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for fatal := false; ; {
		f, more := frames.Next()
		if fatal && strings.HasPrefix(f.Function, "sigs.k8s.io/kustomize/") {
			panic("log.Fatal: " + strings.TrimSpace(string(p)))
		}
		fatal = strings.HasPrefix(f.Function, "log.Fatal")
		if !more {
			return g.next.Write(p)
		}
	}
}
