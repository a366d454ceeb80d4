package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (c *cli) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if output == outputJSON {
				return json.NewEncoder(c.out).Encode(map[string]string{
					"version": c.version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(c.out, "mooring %s (%s, %s/%s)\n", c.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	addOutputFlag(cmd, &output, outputText, outputJSON)
	return cmd
}
