package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// oneArgument asks for the argument that the command's line of use names:
// cobra's own check gives a count alone.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	// cobra puts "[flags]" behind what a command says of itself.
	return fmt.Errorf("%d arguments in place of one: want %s", len(args), cmd.UseLine())
}
