// Quickstart writes a file of support notes through a queue worker against a
// server that misbehaves, and then reads from the server's own books what
// became of each note.
//
//	go run ./examples/quickstart
//
// With -memorysync-url and -fishmem-url, and the keys in MEMORYSYNC_API_KEY and
// FISHMEM_API_KEY, it does the same against live services after a typed yes.
// Live services show no ledger, so the counts are then the client's own. With
// -server it does so against a reference server that runs elsewhere, as one
// started with `go run ./server/cmd/memwrite serve`.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go"
)

//go:embed notes.jsonl
var embedded []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// errUntrue says that the last line is not what it has to be.
var errUntrue = errors.New("the books do not add up")

func run(ctx context.Context, args []string, getenv func(string) string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	file := flags.String("notes", "", "read the notes from this `file` instead of the built-in ones: a record a line, as memwrite ingest reads them")
	memorySync := flags.String("memorysync-url", "", "write to this MemorySync `URL`; the key comes from MEMORYSYNC_API_KEY")
	fishMem := flags.String("fishmem-url", "", "write to this FishMem `URL`; the key comes from FISHMEM_API_KEY")
	server := flags.String("server", "", "write to the reference server at this `URL`, such as that of memwrite serve; the keys come from the same variables")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil // asked for, and printed
	case err != nil:
		return err
	}
	notes, err := load(*file)
	if err != nil {
		return err
	}
	if *server != "" {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		return reference(ctx, strings.TrimSuffix(*server, "/"), notes, getenv, out)
	}
	if *memorySync != "" || *fishMem != "" {
		return live(ctx, notes,
			memwrite.WithMemorySync(*memorySync, getenv("MEMORYSYNC_API_KEY")),
			memwrite.WithFishMem(*fishMem, getenv("FISHMEM_API_KEY")),
			in, out)
	}
	ctx, cancel := context.WithTimeout(ctx, 55*time.Second)
	defer cancel()
	return local(ctx, notes, *file == "", out)
}

func load(file string) ([]Note, error) {
	if file == "" {
		return readNotes(bytes.NewReader(embedded))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readNotes(f)
}

// live writes to real services. Everything it prints is the client's belief.
func live(ctx context.Context, notes []Note, memorySync, fishMem memwrite.Option, in io.Reader, out io.Writer) error {
	// A URL or a key that is missing is told here, before anything is asked.
	client, err := memwrite.New(memorySync, fishMem, memwrite.WithVerifyText(true))
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintf(out, "This writes %d notes to live services, where they stay. Type yes to go on: ", len(notes))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	fmt.Fprintln(out)
	if strings.TrimSpace(answer) != "yes" {
		return errors.New("not confirmed, so nothing was written")
	}
	// One worker and long waits: a free plan allows two calls a second, and a
	// failed attempt there is run again only after a minute.
	w := write(ctx, client, notes, 1, 2*time.Minute)
	rows := believed(notes, w)
	total := count(rows)
	total.balance = "unknown"
	printTable(out, rows)
	fmt.Fprintln(out, total)
	if total.lost > 0 {
		return errUntrue
	}
	return nil
}

// write takes every note from the queue to its end.
func write(ctx context.Context, client *memwrite.Client, notes []Note, workers int, patience time.Duration) *worker {
	w := &worker{
		client:   client,
		queue:    newQueue(notes, func(n Note) bool { return n.Line%4 == 0 }),
		tenant:   "default",
		patience: patience,
		told:     make(map[int]*told),
	}
	w.run(ctx, workers)
	return w
}
