package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memwrite/memwrite-go/server/internal/ingest"
	"github.com/memwrite/memwrite-go/worker"
)

// ingestFlags are the command line of `memwrite ingest`.
type ingestFlags struct {
	config  ingest.Config
	format  string
	order   string
	state   string
	noState bool
	json    bool
	quiet   bool
}

func ingestCommand() *cobra.Command {
	var f ingestFlags
	cmd := &cobra.Command{
		Use:   "ingest FILE",
		Short: "Write a file of records, each once, however often it is started again",
		Long: `Write a file of records, JSONL or CSV with a header, each once. "-" is standard input.

A line is one record:

  {"kind":"note","id":"0001","end_user":"acme","text":"My team ships releases every Thursday."}

with write (add, turn, infer or verbatim), kind, id, version or ref, end_user,
text and the fields of the call. A line that is no record, or that the service
refuses, is reported with its number, and the rest goes on: each of them with
--report FILE, or --report - for standard output, and the first three without.

A second run goes on at the end of the same report. What an earlier run has
written has no line again and is counted as done before; a line that is still
rejected has another.

FILE.memwrite-state beside the file knows what was written, so that a run that
was interrupted or killed goes on where it was, and an id that comes twice with
other text is found. Without it (--no-state, or standard input) the identities
alone keep every record single.

Services and keys come from MEMORYSYNC_BASE_URL, MEMORYSYNC_API_KEY,
FISHMEM_BASE_URL and FISHMEM_API_KEY.

Exit status: 0 all records are written; 1 the command itself failed;
2 some records were rejected; 3 held until somebody acts (a quota, a key, a
service that is not configured), run it again then; 4 not finished, run it again.`,
		Args: oneArgument,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl", "csv"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "", "jsonl or csv; by default what the file's name ends in, else jsonl")
	flags.StringVar(&f.config.Defaults.Write, "write", "", "how to write records that do not say it: add, turn, infer or verbatim")
	flags.StringVar(&f.config.Defaults.Kind, "kind", "", "the kind of records that have an id and no kind")
	flags.StringVar(&f.config.Defaults.EndUser, "end-user", "", "the end user of records that name none")
	flags.StringVar(&f.order, "order", "user", "user writes the records of an end user one after the other; none does not")
	flags.IntVar(&f.config.Concurrency, "concurrency", 8, "writes on their way at one time")
	flags.IntVar(&f.config.Attempts, "attempts", 5, "how often a record is sent anew whose service fails, five tries each")
	flags.BoolVar(&f.config.WaitHold, "wait", false, "wait when a quota is used up or a key is refused, and go on when a probe passes")
	flags.BoolVar(&f.config.DryRun, "dry-run", false, "read and check everything, and send nothing")
	flags.BoolVar(&f.config.DeadLetter, "dead-letters", false, "the lines are a worker's dead letters; their records are written again")
	flags.StringVar(&f.state, "state", "", "the state `file`; by default FILE.memwrite-state")
	flags.BoolVar(&f.noState, "no-state", false, "keep no state")
	flags.StringVar(&f.config.Report, "report", "", "write what became of each record to this `file`, a line of JSON each; - is standard output, and the counts go to standard error then")
	flags.BoolVar(&f.json, "json", false, "print the counts as JSON")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	complete(cmd, "format", "jsonl", "csv")
	complete(cmd, "write", "add", "turn", "infer", "verbatim")
	complete(cmd, "order", "user", "none")
	return cmd
}

func (f *ingestFlags) run(cmd *cobra.Command, file string) error {
	cfg := f.config
	if err := f.check(file); err != nil {
		return err
	}
	in, size, closeIn, err := openFile(cmd, file)
	if err != nil {
		return err
	}
	defer closeIn()
	cfg.In, cfg.Unordered = in, f.order == "none"
	cfg.CSV = f.format == "csv" || f.format == "" && strings.EqualFold(filepath.Ext(file), ".csv")
	switch {
	case f.noState:
	case f.state != "":
		cfg.State = f.state
	case file != "-":
		cfg.State = file + ".memwrite-state"
	}
	bar := newProgress(cmd.ErrOrStderr(), size, f.quiet || f.json)
	cfg.Progress = bar.show
	ctx := cmd.Context()
	client, err := newClient()
	if err != nil && !cfg.DryRun {
		return err
	}
	if client != nil {
		defer func() { _ = client.Close() }()
	}
	out := cmd.OutOrStdout()
	if cfg.Report == "-" {
		cfg.ReportTo, cfg.Report, out = out, "", cmd.ErrOrStderr()
	}
	var refused []ingest.Line // the first of them
	cfg.Said = func(l ingest.Line) {
		if l.Outcome == ingest.Rejected && len(refused) < refusedShown {
			refused = append(refused, l)
		}
	}
	began := time.Now()
	counts, err := ingest.Run(ctx, client, cfg)
	bar.end()
	if f.config.Report == "" {
		for _, l := range refused {
			fmt.Fprintf(cmd.ErrOrStderr(), "line %d: %s\n", l.Line, l.Reason)
		}
	}
	if printed := f.summary(out, counts, time.Since(began)); err == nil {
		err = printed
	}
	return f.status(ctx, counts, err)
}

// refusedShown is how many rejected lines are shown without a report.
const refusedShown = 3

func (f *ingestFlags) check(file string) error {
	switch {
	case f.format != "" && f.format != "jsonl" && f.format != "csv":
		return errors.New("--format is jsonl or csv")
	case f.order != "user" && f.order != "none":
		return errors.New("--order is user or none")
	case f.state != "" && f.noState:
		return errors.New("--state and --no-state: use one of the two")
	case f.config.Concurrency < 1 || f.config.Concurrency > 256:
		return errors.New("--concurrency is 1 to 256")
	case f.config.Attempts < 1:
		return errors.New("--attempts is at least 1")
	}
	return nil
}

func openFile(cmd *cobra.Command, file string) (in io.Reader, size int64, done func(), err error) {
	if file == "-" {
		return cmd.InOrStdin(), -1, func() {}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		_ = f.Close()
		return nil, 0, nil, errors.Join(err, fmt.Errorf("%s is not a file", file))
	}
	size = -1
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	return f, size, func() { _ = f.Close() }, nil
}

// summary is the last line, for people or for programs.
func (f *ingestFlags) summary(out io.Writer, c ingest.Counts, took time.Duration) error {
	if f.json {
		return printJSON(out, c)
	}
	parts := []string{records(c.Records)}
	for _, p := range []struct {
		n    int
		what string
	}{
		{c.Before, "done before"}, {c.Stored, string(worker.Stored)}, {c.Already, "already there"}, {c.Skipped, "with nothing worth storing"},
		{c.Duplicate, "on duplicate lines"}, {c.Valid, "valid"}, {c.Rejected, "rejected"}, {c.Held, "held"}, {c.Unfinished, "not finished"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	fmt.Fprintf(out, "%s in %v\n", strings.Join(parts, ", "), took.Round(100*time.Millisecond))
	return nil
}

func records(n int) string {
	if n == 1 {
		return "1 record"
	}
	return fmt.Sprintf("%d records", n)
}

// rejected says where to read about the records that can never pass.
func (f *ingestFlags) rejected(n int) string {
	s := records(n) + " rejected"
	switch f.config.Report {
	case "":
		if n > refusedShown {
			return s + "; --report FILE says which and why of all"
		}
		return s
	case "-":
		return s + "; the report says which and why"
	}
	return s + "; " + f.config.Report + " says which and why"
}

func (f *ingestFlags) status(ctx context.Context, c ingest.Counts, err error) error {
	switch {
	case err != nil:
		return err
	case c.Holding:
		return exit(3, "the service holds: "+c.HeldFor+". Run the same command again when that is mended")
	case ctx.Err() != nil:
		return exit(4, "interrupted; the same command goes on from here")
	case c.Unfinished > 0 || c.Incomplete:
		why := ""
		if c.Why != "" {
			why = " (" + c.Why + ")"
		}
		return exit(4, "not finished"+why+"; run the same command again")
	case c.Rejected > 0:
		return exit(2, f.rejected(c.Rejected))
	}
	return nil
}
