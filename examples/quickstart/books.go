package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// local runs the notes against a server of its own and judges them by that
// server's books: its tasks, its records, its ledger and its journal.
func local(ctx context.Context, notes []Note, builtIn bool, out io.Writer) error {
	srv, err := mockserver.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	troubles := arm(srv, notes)

	client, err := memwrite.New(
		memwrite.WithMemorySync(srv.URL, srv.MemorySyncKey),
		memwrite.WithFishMem(srv.URL, srv.FishMemKey),
		memwrite.WithVerifyText(true),
		// The server is next door, so waiting may be short. Against a service
		// far away the defaults are better.
		memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: 100 * time.Millisecond}),
	)
	if err != nil {
		return err
	}
	defer client.Close()

	w := write(ctx, client, notes, 4, 3*time.Second)
	if err := rest(ctx, srv); err != nil {
		return err
	}
	rows, total := judge(srv, notes, w, troubles)
	printTable(out, rows)
	fmt.Fprintln(out, total)
	if !total.holds() || builtIn && (total.skipped == 0 || total.released == 0) {
		return errUntrue
	}
	return nil
}

// rest waits until no task is at work. A turn is answered before its facts are
// stored and its wire has no event to wait for, so the server is asked itself.
func rest(ctx context.Context, srv *mockserver.Server) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if srv.Ledger().Open == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("tasks were still at work: %w", context.Cause(ctx))
		}
	}
}

// judge fills the table and the totals from the server's books alone. Only what
// the queue did, its redeliveries, comes from the worker.
func judge(srv *mockserver.Server, notes []Note, w *worker, troubles []trouble) ([]row, totals) {
	journal, records := srv.Journal(), srv.Records()
	rows := make([]row, 0, len(notes))
	own := map[string]bool{} // tasks that belong to a note of the file
	for _, n := range notes {
		r := row{note: n, incidents: struck(troubles, n.Line)}
		var requests int
		r.outcome, requests = answered(journal, n)
		runs := 0
		for _, task := range srv.TasksOf(key(n)) {
			own[task.ID] = true
			runs += task.Attempts
			if r.outcome == "" {
				r.outcome = outcomeOf(task)
				r.memory = memoryOf(records, task)
			}
		}
		if r.outcome == "" {
			r.outcome = outcomeLost
		}
		if t := w.told[n.Line]; t != nil {
			r.incidents = append(r.incidents, t.incidents...)
		}
		r.attempts = fmt.Sprintf("%d sent, %s", requests, plural(runs, "run"))
		rows = append(rows, r)
	}

	total := count(rows)
	total.duplicates = duplicates(records, own)
	ledger := srv.Ledger()
	total.settled, total.released = ledger.Settled, ledger.Released
	total.balance = "off"
	succeeded, failed := 0, 0
	for _, task := range srv.Tasks() {
		switch task.State {
		case "SUCCEEDED":
			succeeded++
		case "FAILED":
			failed++
		}
	}
	if ledger.Balanced && ledger.Open == 0 && ledger.Settled == succeeded && ledger.Released >= failed &&
		ledger.Reserved == ledger.Settled+ledger.Released {
		total.balance = "ok"
	}
	return rows, total
}

// key is what the server's books know a note by.
func key(n Note) string {
	if n.Turn != nil {
		return n.Text()
	}
	return n.Name()
}

// outcomeOf reads what became of a note from its own task.
func outcomeOf(task mockserver.Task) string {
	switch {
	case task.State == "FAILED":
		return outcomeFailed
	case task.State != "SUCCEEDED":
		return outcomeLost
	case task.Stored > 0:
		return outcomeStored
	case len(task.RecordIDs) > 0:
		return outcomeAlready // another line's memory says the same
	case task.Operation == "add":
		return outcomeSkipped
	}
	return outcomeNoMemory
}

func memoryOf(records []mockserver.Record, task mockserver.Task) string {
	for _, r := range records {
		if r.TaskID == task.ID && !r.Deleted {
			return r.Text
		}
	}
	return ""
}

// answered reads the journal for what no task shows: that a reference was
// taken by another line's text first, and that a turn was skipped before it
// became a task. It also counts the requests that carried this note.
func answered(journal []mockserver.Request, n Note) (outcome string, requests int) {
	owner, taken := "", false
	for _, r := range journal {
		if r.Method != http.MethodPost || r.Identity.String() != key(n) {
			continue
		}
		text := textOf(r.Body)
		if text == n.Text() {
			requests++
		}
		if !taken && r.Status/100 == 2 {
			owner, taken = text, true
		}
		var turn struct {
			Status string `json:"processing_status"`
		}
		if n.Turn != nil && json.Unmarshal(r.AnswerBody, &turn) == nil &&
			(turn.Status == string(memwrite.SkippedNonUser) || turn.Status == string(memwrite.SkippedLowValue)) {
			outcome = outcomeSkipped
		}
	}
	if taken && owner != n.Text() {
		outcome = outcomeAlready
	}
	return outcome, requests
}

func textOf(body []byte) string {
	var b struct{ Text, Content string }
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	if b.Text != "" {
		return b.Text
	}
	return b.Content
}

// duplicates counts records that nobody's task owns, and records of one
// customer that say the same as another.
func duplicates(records []mockserver.Record, own map[string]bool) int {
	n := 0
	type said struct{ service, customer, text string }
	seen := map[said]bool{}
	for _, r := range records {
		if r.Deleted {
			continue
		}
		s := said{r.Service, r.EndUser, r.Text}
		if !own[r.TaskID] || seen[s] {
			n++
		}
		seen[s] = true
	}
	return n
}
