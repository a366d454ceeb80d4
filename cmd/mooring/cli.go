package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// cli is what the commands share: where they read and write, and who they are.
type cli struct {
	in      io.Reader
	out     io.Writer
	errOut  io.Writer
	getenv  func(string) string
	version string

	color string // the flag --color
}

// execute runs one command line and gives its exit code.
func (c *cli) execute(ctx context.Context, args []string) int {
	// Libraries write to the log what they also return as an error. A person at a terminal needs it once. The agent sets
	// a logger of its own.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	root := c.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		printError(c.errOut, paletteFor(c.color, c.errOut, c.getenv), err)
	}
	return codeOf(err)
}

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "mooring",
		Short: "Keep an Istio mesh moored to Git",
		Long: `Mooring keeps an Istio mesh moored to Git.

The agent in the cluster pulls a path of a Git repository, renders it, checks it with
Istio's own rules, and keeps the cluster that way. The other commands show what it
would do, what it did, and tell it what to do.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := fmt.Errorf("there is no command %q", args[0])
			for distance := 1; distance <= 2; distance++ {
				cmd.SuggestionsMinimumDistance = distance
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					return &exitError{code: exitUsage, err: withHint(err, "did you mean mooring %s?", strings.Join(near, " or mooring "))}
				}
			}
			return &exitError{code: exitUsage, err: withHint(err, "mooring --help lists the commands")}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errOut)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageErrorf(cmd.CommandPath(), "%w", err)
	})
	root.PersistentFlags().Var(choice(&c.color, colorAuto, colorAlways, colorNever), "color",
		"colours in the output: auto, always or never; auto means on a terminal, unless NO_COLOR is set")
	completeChoices(root, "color", colorAuto, colorAlways, colorNever)
	root.AddGroup(
		&cobra.Group{ID: groupFiles, Title: "Before you commit:"},
		&cobra.Group{ID: groupCluster, Title: "What the cluster has, and what the agent does:"},
	)
	root.AddCommand(
		c.initCommand(), c.explainCommand(), c.renderCommand(), c.checkCommand(),
		c.agentCommand(), c.diffCommand(), c.getCommand(), c.syncCommand(), c.adoptCommand(), c.suspendCommand(), c.resumeCommand(),
		c.historyCommand(), c.rollbackCommand(), c.unpinCommand(), c.promoteCommand(),
		c.versionCommand(), c.completionCommand(),
	)
	return root
}

// Groups of commands in help.
const (
	groupFiles   = "files"
	groupCluster = "cluster"
)

// choiceFlag is a flag that has one of a few values; cobra answers a wrong one with the list.
type choiceFlag struct {
	value *string
	all   []string
}

// choice makes a flag value; the first choice is the default.
func choice(value *string, all ...string) *choiceFlag {
	*value = all[0]
	return &choiceFlag{value: value, all: all}
}

// String is the value as it is.
func (f *choiceFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}

// Set refuses what is not among the choices.
func (f *choiceFlag) Set(s string) error {
	if !slices.Contains(f.all, s) {
		return fmt.Errorf("choose one of %s", strings.Join(f.all, ", "))
	}
	*f.value = s
	return nil
}

// Type is what help calls the value.
func (f *choiceFlag) Type() string { return strings.Join(f.all, "|") }

// completeChoices offers the choices of a flag to the shell.
func completeChoices(cmd *cobra.Command, flag string, all ...string) {
	// It fails only for a flag that does not exist, which every test of the command would show.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
}

// args checks the number of arguments of a command. what names them in the message.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageErrorf(cmd.CommandPath(), "%s is missing", what)
		case most == 0 && len(args) > 0:
			return usageErrorf(cmd.CommandPath(), "no argument is expected, but there is %q", args[0])
		case most >= 0 && len(args) > most:
			return usageErrorf(cmd.CommandPath(), "one %s is expected, but there is %q too", what, args[most])
		}
		return nil
	}
}
