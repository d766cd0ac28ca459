package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/conformance"
)

// conform runs the suite of the protocol's promises against a server. URLs and
// keys that are not given are those the client reads from the environment.
func conform() *cobra.Command {
	var (
		cfg      conformance.Config
		junit    string
		planOnly bool
	)
	cmd := &cobra.Command{
		Use:   "conform",
		Short: "Check the protocol's promises against a server, a live one included",
		Long: `Check the protocol's promises against a server: repeats, conflicts, windows, crashes,
evidence, billing, error bodies, Retry-After and isolation.

What the server does not offer is not run, and said. Crashes and failures need the
control API, which "memwrite mock" opens; isolation needs keys of a second workspace.
A service that is not on this machine and opens no control API is only read from,
unless --allow-writes is given: the plan says what that spends.`,
		Example: `  memwrite mock > env & sleep 1; . ./env && memwrite conform
  eval "$(memwrite keys)" && memwrite conform
  memwrite conform --memorysync-url https://api.memorysync.io --fishmem-url https://fishmem.com --plan`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			for _, e := range []struct {
				to   *string
				name string
			}{
				{&cfg.MemorySync.URL, "MEMORYSYNC_BASE_URL"}, {&cfg.MemorySync.Key, "MEMORYSYNC_API_KEY"}, {&cfg.OtherMemorySyncKey, "MEMORYSYNC_OTHER_API_KEY"},
				{&cfg.FishMem.URL, "FISHMEM_BASE_URL"}, {&cfg.FishMem.Key, "FISHMEM_API_KEY"}, {&cfg.OtherFishMemKey, "FISHMEM_OTHER_API_KEY"},
				{&cfg.ControlURL, "MEMWRITE_CONTROL_URL"}, {&cfg.ControlToken, "MEMWRITE_CONTROL_TOKEN"},
			} {
				*e.to = cmp.Or(*e.to, os.Getenv(e.name))
			}
			if planOnly {
				p, err := conformance.Plan(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "plan: %s; found: %v\n", p, p.Offers)
				return nil
			}
			cfg.Planned = func(p conformance.Planned) error {
				fmt.Fprintf(out, "plan: %s; found: %v\n", p, p.Offers)
				return nil
			}
			report, err := conformance.Run(cmd.Context(), cfg)
			if report == nil || err != nil {
				return err
			}
			if err := report.WriteTable(out); err != nil {
				return err
			}
			if junit != "" {
				if err := writeJUnit(junit, report); err != nil {
					return err
				}
			}
			if n := len(report.Failures()); n > 0 {
				return fmt.Errorf("%d promises are not kept", n)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.MemorySync.URL, "memorysync-url", "", "base `URL` of MemorySync; MEMORYSYNC_BASE_URL")
	f.StringVar(&cfg.MemorySync.Key, "memorysync-key", "", "its API `key`; better in MEMORYSYNC_API_KEY")
	f.StringVar(&cfg.OtherMemorySyncKey, "other-memorysync-key", "", "a `key` of another workspace; MEMORYSYNC_OTHER_API_KEY")
	f.StringVar(&cfg.FishMem.URL, "fishmem-url", "", "base `URL` of FishMem; FISHMEM_BASE_URL")
	f.StringVar(&cfg.FishMem.Key, "fishmem-key", "", "its API `key`; better in FISHMEM_API_KEY")
	f.StringVar(&cfg.OtherFishMemKey, "other-fishmem-key", "", "a `key` of another workspace; FISHMEM_OTHER_API_KEY")
	f.StringVar(&cfg.ControlURL, "control-url", "", "base `URL` of the reference server's control API; MEMWRITE_CONTROL_URL")
	f.StringVar(&cfg.ControlToken, "control-token", "", "its `token`; MEMWRITE_CONTROL_TOKEN")
	f.BoolVar(&cfg.AllowWrites, "allow-writes", false, "write to a live service, which costs credits and adds")
	f.StringSliceVar(&cfg.Only, "only", nil, "run the checks whose names begin so, such as accept/ or billing/failed")
	f.DurationVar(&cfg.Patience, "patience", 0, "how long one write may take to end (default 2m)")
	f.IntVar(&cfg.Parallel, "parallel", 0, "checks that run at once (default 8 on this machine, else 1)")
	f.DurationVar(&cfg.Pace, "pace", 0, "least time between two calls to a service (default none on this machine, else 700ms)")
	f.StringVar(&junit, "junit", "", "write the report as JUnit XML to this `file` too")
	f.BoolVar(&planOnly, "plan", false, "only say what a run would do and spend")
	return cmd
}

func writeJUnit(file string, report *conformance.Report) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteJUnit(f), f.Close())
}
