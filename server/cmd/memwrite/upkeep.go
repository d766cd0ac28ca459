package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/server/sqlite"
)

// backupCommand copies a SQLite file that may be in use.
func backupCommand() *cobra.Command {
	var db string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the SQLite file at one moment into a new one, while serve may be using it",
		Args:  oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sqlite.Backup(cmd.Context(), db, args[0])
		},
	}
	cmd.Flags().StringVar(&db, "db", defaultDB(), "the `file` serve uses")
	return cmd
}

// healthCommand is for a container that has no other program to ask with.
func healthCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it is ready; the exit status says so",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := &http.Client{Timeout: 5 * time.Second}
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, url+"/readyz", nil)
			if err != nil {
				return err
			}
			res, err := client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("%s is not ready: %s", url, res.Status)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://"+defaultListen, "the `URL` of the server")
	return cmd
}
