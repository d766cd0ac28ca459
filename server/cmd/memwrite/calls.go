package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go"
)

// exitError is an end with a status of its own, which scripts can tell.
type exitError struct {
	status int
	words  string
}

func (e *exitError) Error() string { return e.words }

func exit(status int, words string) error { return &exitError{status, words} }

// status is what the process ends with.
func status(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.status
	}
	return 1
}

// newClient takes services and keys from the environment: a key on the command
// line would be seen by everybody on the machine.
func newClient() (*memwrite.Client, error) {
	client, err := memwrite.New(memwrite.FromEnvironment(), memwrite.WithUserAgent("memwrite-cli"))
	var e *memwrite.Error
	if errors.As(err, &e) && e.Kind == memwrite.KindInvalidInput {
		why := variables(e.Field) + ": " + e.Message
		if e.Field == "service" {
			why = "no service is set"
		}
		return nil, errors.New(why + ". Set " + variables(optionMemorySync) + ", or " + variables(optionFishMem) + "; with a server of your own: eval \"$(memwrite keys)\"")
	}
	return client, err
}

// The options of the library that the environment takes the place of.
const (
	optionMemorySync = "WithMemorySync"
	optionFishMem    = "WithFishMem"
)

// variables puts the names of the environment where words name an option.
func variables(words string) string {
	return strings.NewReplacer(
		optionMemorySync, "MEMORYSYNC_BASE_URL with MEMORYSYNC_API_KEY",
		optionFishMem, "FISHMEM_BASE_URL with FISHMEM_API_KEY",
	).Replace(words)
}

// said is an error as this program says it: its name is before it already, and
// what it calls an option is a variable here.
func said(err error) string { return variables(strings.TrimPrefix(err.Error(), "memwrite: ")) }

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// complete offers the values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// withClient is a command that makes calls.
func withClient(run func(cmd *cobra.Command, client *memwrite.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := newClient()
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		return run(cmd, client, args)
	}
}

func waitCommand() *cobra.Command {
	var timeout time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "wait EVENT", Short: "Wait until an inferred write has ended, and say how",
		Long: "Wait until an inferred write has ended.\n\nExit status: 0 it SUCCEEDED; 1 it could not be asked; 2 it FAILED; 4 it had not ended when the time was over.",
		Args: oneArgument, ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the event as JSON")
	cmd.RunE = withClient(func(cmd *cobra.Command, client *memwrite.Client, args []string) error {
		return waitFor(cmd, client, args[0], timeout, asJSON)
	})
	return cmd
}

func waitFor(cmd *cobra.Command, client *memwrite.Client, id string, timeout time.Duration, asJSON bool) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	ev, err := client.WaitForEvent(ctx, id)
	var e *memwrite.Error
	if errors.As(err, &e) && e.Event != nil {
		ev = e.Event
	}
	if ev != nil {
		if err := printEvents(cmd.OutOrStdout(), asJSON, *ev); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, memwrite.ErrEventFailed):
		return exit(2, "the event FAILED and no memory was committed; `memwrite redrive "+id+"` runs it again")
	case errors.Is(err, memwrite.ErrStillPending):
		return exit(4, "the event has not ended; it goes on at the service")
	}
	return err
}

func eventsCommand() *cobra.Command {
	var filter string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "events", Short: "List the events of inferred writes, newest first", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&filter, "status", "", "only these: "+oneOf(states))
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many; 0 is all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each")
	complete(cmd, "status", states...)
	ask := withClient(func(cmd *cobra.Command, client *memwrite.Client, _ []string) error {
		var list []memwrite.Event
		n := 0
		for ev, err := range client.Events(cmd.Context(), memwrite.EventFilter{Status: memwrite.EventStatus(filter)}) {
			if err != nil {
				return err
			}
			if asJSON { // as they come: there may be many
				if err := printJSON(cmd.OutOrStdout(), ev); err != nil {
					return err
				}
			} else {
				list = append(list, ev)
			}
			if n++; n == limit {
				break
			}
		}
		if asJSON {
			return nil
		}
		return printEvents(cmd.OutOrStdout(), false, list...)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case filter != "" && !slices.Contains(states, filter):
			return fmt.Errorf("--status %s: want %s", filter, oneOf(states))
		case limit < 0:
			return errors.New("--limit is not below 0")
		}
		return ask(cmd, args)
	}
	return cmd
}

// states are those an event can be in.
var states = []string{string(memwrite.Pending), string(memwrite.Running), string(memwrite.Retrying), string(memwrite.Succeeded), string(memwrite.Failed)}

// oneOf lists words: a, b or c.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func redriveCommand() *cobra.Command {
	var timeout time.Duration
	var wait, asJSON bool
	cmd := &cobra.Command{
		Use: "redrive EVENT", Short: "Run a FAILED event again, which sending its key again would not",
		Args: oneArgument, ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended, as `memwrite wait` does")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the event as JSON")
	cmd.RunE = withClient(func(cmd *cobra.Command, client *memwrite.Client, args []string) error {
		ev, err := client.Redrive(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if wait {
			return waitFor(cmd, client, ev.ID, timeout, asJSON)
		}
		return printEvents(cmd.OutOrStdout(), asJSON, *ev)
	})
	return cmd
}

func forgetCommand() *cobra.Command {
	var req memwrite.ForgetRequest
	var asJSON bool
	cmd := &cobra.Command{
		Use: "forget --end-user USER ID...", Short: "Delete memories of an end user by their numbers",
		Long: "Delete memories of an end user by their numbers. A second call deletes nothing more. The reference that made a memory stays taken.",
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&req.EndUserID, "end-user", "", "whose memories they are")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why; the service wants it for memories tagged pii")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	_ = cmd.MarkFlagRequired("end-user")
	cmd.RunE = withClient(func(cmd *cobra.Command, client *memwrite.Client, args []string) error {
		for _, a := range args {
			id, err := strconv.ParseInt(a, 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not the number of a memory", a)
			}
			req.MemoryIDs = append(req.MemoryIDs, id)
		}
		res, err := client.Forget(cmd.Context(), req)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), map[string]any{"deleted": res.Deleted, "deleted_ids": res.DeletedIDs})
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d of %d deleted\n", res.Deleted, len(req.MemoryIDs))
		return nil
	})
	return cmd
}

func printEvents(out io.Writer, asJSON bool, list ...memwrite.Event) error {
	if asJSON {
		for _, ev := range list {
			if err := printJSON(out, ev); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "EVENT\tSTATUS\tATTEMPTS\tMEMORIES\tCREATED\tERROR")
	for _, ev := range list {
		fmt.Fprintf(w, "%s\t%s\t%d/%d\t%d\t%s\t%s\n", ev.ID, ev.Status, ev.Attempts, ev.MaxAttempts, len(ev.Results), ev.CreatedAt, ev.ErrorCode)
	}
	return w.Flush()
}
