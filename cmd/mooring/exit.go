package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mooring-dev/mooring/repos"
)

// Exit codes. They are part of the interface: scripts and CI decide by them.
const (
	exitFine = 0
	// exitFound means that the command did its work and the answer is "no": diff found a difference, check found an
	// Error, sync ended not Ready. Other commands use it for errors too, as they have nothing to find.
	exitFound = 1
	// exitUsage means that the command line made no sense, and for diff and check that they could not tell.
	exitUsage = 2
)

// exitHelp is what help says about the exit codes of most commands.
const exitHelp = "Exit code: 0 fine, 1 error, 2 wrong usage."

// exitError carries an exit code to execute. Without an err nothing is printed: the command has said it all.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// cannotTell gives an error the exit code that keeps it apart from a finding.
func cannotTell(err error) error {
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &exitError{code: exitUsage, err: err}
}

// hintError is an error with the next step for the person who reads it.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// Hint is the next step.
func (e *hintError) Hint() string { return e.hint }

// withHint adds the next step to an error; an empty hint adds nothing.
func withHint(err error, format string, args ...any) error {
	if err == nil || format == "" {
		return err
	}
	return &hintError{err: err, hint: fmt.Sprintf(format, args...)}
}

// usageErrorf is a command line that makes no sense.
func usageErrorf(command, format string, args ...any) error {
	return &exitError{code: exitUsage, err: withHint(fmt.Errorf(format, args...), "see %s --help", command)}
}

// codeOf gives the exit code of an error.
func codeOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &exit):
		return exit.code
	}
	return exitFound
}

// printError writes an error for a person. A silent exitError has been explained already.
func printError(w io.Writer, color palette, err error) {
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return
	}
	if errors.Is(err, context.Canceled) {
		err = withHint(err, "it was interrupted; what was done until then stays done")
	}
	_, _ = fmt.Fprintf(w, "%s %s\n", color.red("mooring:"), indent(err.Error()))
	if hint := hintOf(err); hint != "" {
		_, _ = fmt.Fprintf(w, "%s %s\n", color.yellow("hint:"), indent(hint))
	}
}

// hintOf finds the next step in an error: its own, or the one that follows from the kind of fault.
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) && hinted.Hint() != "" {
		return hinted.Hint()
	}
	var mended interface{ Mend() string }
	if errors.As(err, &mended) && mended.Mend() != "" {
		return mended.Mend()
	}
	if hint := repos.HintOf(err); hint != "" {
		return hint
	}
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err):
		return nameCluster
	case meta.IsNoMatchError(err):
		return "the cluster does not know Moorings: install Mooring with kubectl apply -k deploy"
	case apierrors.IsUnauthorized(err):
		return "the cluster does not know who you are: the credentials of your kubeconfig are missing or too old"
	case apierrors.IsForbidden(err):
		return "your account has no right to do that: kubectl auth can-i --list says what it may do"
	case utilnet.IsConnectionRefused(err):
		return "nothing listens there: is the cluster up, and does your kubeconfig (--kubeconfig, --context) name the right one?"
	}
	return ""
}

// indent keeps the lines after the first one apart from what follows.
func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
