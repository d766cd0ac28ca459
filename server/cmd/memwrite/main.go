// Memwrite is the reference server of the memwrite protocol, as a program.
//
//	memwrite serve
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "memwrite:", said(err))
		os.Exit(status(err))
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "memwrite",
		Short:         "Memory writes that land exactly once",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(serve(), keysCommand(), conform(), mock(), ingestCommand(), waitCommand(), eventsCommand(), forgetCommand(), redriveCommand(), backupCommand(), rebuildCommand(), healthCommand(), versionCommand())
	return cmd
}
