package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mooring-dev/mooring/test/kube"
)

// -update rewrites what the scripts expect with what the commands print: read the diff before you commit it.
var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// kubeMain starts no more than a plain testing.M, and stops the control plane that a test asked for.
type kubeMain struct{ *testing.M }

func (m kubeMain) Run() int { return kube.Run(m.M) }

// TestMain makes the test binary be the command: a script that says mooring runs this very file under that name.
func TestMain(m *testing.M) {
	testscript.Main(kubeMain{m}, map[string]func(){"mooring": main})
}

// TestCommand runs what needs no cluster.
func TestCommand(t *testing.T) {
	testscript.Run(t, params(nil, "testdata/*.txtar"))
}

// params of all scripts. A script runs with nothing of the machine's configuration.
func params(setup func(*testscript.Env) error, pattern string) testscript.Params {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		panic(fmt.Sprintf("no script in %s: %v", pattern, err))
	}
	return testscript.Params{
		Files:              files,
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, ".home"))
			env.Setenv("TERM", "xterm")
			if setup == nil {
				return nil
			}
			return setup(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     code,
			"terminal": terminal,
		},
	}
}

// code runs a command that must end with a certain exit code: code 2 mooring check nowhere.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// terminal runs a command whose output goes to a terminal, 80 columns wide.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: terminal command...")
	}
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	line := "stty cols 80 && exec " + strings.Join(quoted, " ")
	if err := ts.Exec("script", "--quiet", "--return", "--command", line, os.DevNull); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
}

// TestEveryCommandIsTried makes sure that a new command comes with a script.
func TestEveryCommandIsTried(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range slices.Concat(scripts, more) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, cmd := range new(cli).rootCommand().Commands() {
		if !strings.Contains(all.String(), "mooring "+cmd.Name()) {
			t.Errorf("no script runs mooring %s", cmd.Name())
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("mooring %s: its line in help is %q", cmd.Name(), cmd.Short)
		}
	}
}
