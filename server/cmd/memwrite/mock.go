package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/mockserver"
)

// mock is the server of package mockserver as a program, for tests of software
// in any language and for the whole of `memwrite conform`.
func mock() *cobra.Command {
	var (
		listen                         string
		credits, adds                  int64
		strictQuota, strictKeys, rates bool
		realTimes                      bool
		attempts                       int
	)
	cmd := &cobra.Command{
		Use:   "mock",
		Short: "Answer both services from memory, for tests: faults, clock and books under /_control",
		Long: `Answer both services from memory until interrupted, for tests.

The control API under /_control moves the clock, makes things go wrong and shows the
books; callers on this machine need no token for it. What a test needs to know is
printed at the start, as a shell reads it. Nothing is kept.`,
		Example: "  memwrite mock > env & sleep 1; . ./env",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := []mockserver.Option{mockserver.Address(listen), mockserver.Credits(credits), mockserver.Adds(adds, strictQuota), mockserver.Attempts(attempts)}
			for on, o := range map[*bool]mockserver.Option{&strictKeys: mockserver.StrictKeys(), &rates: mockserver.RateLimits(), &realTimes: mockserver.RealTimes()} {
				if *on {
					opts = append(opts, o)
				}
			}
			srv, err := mockserver.Start(opts...)
			if err != nil {
				return err
			}
			defer srv.Close()
			for _, v := range [][2]string{
				{"MEMORYSYNC_BASE_URL", srv.URL}, {"MEMORYSYNC_API_KEY", srv.MemorySyncKey},
				{"FISHMEM_BASE_URL", srv.URL}, {"FISHMEM_API_KEY", srv.FishMemKey},
				{"MEMORYSYNC_OTHER_API_KEY", srv.NewKey("other", "memorysync", allScopes["memorysync"]...)},
				{"FISHMEM_OTHER_API_KEY", srv.NewKey("other", "fishmem", allScopes["fishmem"]...)},
				{"MEMWRITE_CONTROL_URL", srv.URL}, {"MEMWRITE_CONTROL_TOKEN", srv.ControlToken},
			} {
				fmt.Fprintf(cmd.OutOrStdout(), "export %s=%s\n", v[0], v[1])
			}
			<-cmd.Context().Done()
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 is a free one")
	f.Int64Var(&credits, "credits", -1, "FishMem credits; -1 is no limit")
	f.Int64Var(&adds, "adds", -1, "MemorySync adds a month; -1 is no limit")
	f.BoolVar(&strictQuota, "strict-quota", false, "answer 429 when the month is used up, in place of dropping writes silently")
	f.BoolVar(&strictKeys, "strict-keys", false, "ask for an Idempotency-Key on verbatim writes and deletes too")
	f.BoolVar(&rates, "rate-limits", false, "limit each key as the live services do")
	f.BoolVar(&realTimes, "real-times", false, "leases, back-off and repair as in production, in place of milliseconds")
	f.IntVar(&attempts, "attempts", 5, "attempts of a task before it is FAILED")
	return cmd
}
