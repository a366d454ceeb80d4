package e2e_test

import (
	"errors"
	"os/exec"
	"strings"
)

// shell runs a line as a user types it, in which NS stands for the namespace, and wants the exit code. It gives what was printed.
func (s *site) shell(line string, code int) string {
	s.t.Helper()
	line = strings.ReplaceAll(line, "NS", s.ns)
	out, err := s.w.Shell(within(s.t, patience), s.w.Dir, line)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != code {
		s.t.Errorf("$ %s: exit code %d, want %d; it printed:\n%s", line, got, code, out)
	}
	return out
}

// mustShell runs a line that must succeed and print all the parts.
func (s *site) mustShell(line string, parts ...string) {
	s.t.Helper()
	out := s.shell(line, 0)
	if missing := lacks(out, parts); missing != "" {
		s.t.Errorf("$ %s: what it printed lacks %q:\n%s", line, missing, out)
	}
}
