package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that teaches a shell to complete commands, flags and names of Moorings",
		Long: `Print the script that teaches a shell to complete commands, flags and the names of the
Moorings in the cluster.

For this shell:       source <(mooring completion bash)
For every bash:       mooring completion bash > /etc/bash_completion.d/mooring
For every zsh:        mooring completion zsh > "${fpath[1]}/_mooring"
For every fish:       mooring completion fish > ~/.config/fish/completions/mooring.fish`,
		Args:      args(1, 1, "shell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.out, true)
			case "zsh":
				return root.GenZshCompletion(c.out)
			case "fish":
				return root.GenFishCompletion(c.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(c.out)
			}
			return usageErrorf(cmd.CommandPath(), "there is no completion for the shell %q, only for bash, zsh, fish and powershell", args[0])
		},
	}
}
