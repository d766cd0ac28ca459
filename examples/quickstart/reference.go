package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go"
)

// reference writes to a reference server that runs elsewhere, such as
// `memwrite serve`. Nothing goes wrong there on purpose; the queue still
// delivers again. The outcomes are the client's belief, and the money is read
// from the server's ledger, which this run moves from where it stood.
func reference(ctx context.Context, url string, notes []Note, getenv func(string) string, out io.Writer) error {
	key := getenv("FISHMEM_API_KEY")
	client, err := memwrite.New(
		memwrite.WithMemorySync(url, getenv("MEMORYSYNC_API_KEY")),
		memwrite.WithFishMem(url, key),
		memwrite.WithVerifyText(true),
	)
	if err != nil {
		return fmt.Errorf("%w (keys come from MEMORYSYNC_API_KEY and FISHMEM_API_KEY; eval \"$(memwrite keys)\" sets them)", err)
	}
	defer client.Close()
	before, err := usageOf(ctx, url, key)
	if err != nil {
		return err
	}
	w := write(ctx, client, notes, 4, 30*time.Second)
	rows := believed(notes, w)
	total := count(rows)
	after, err := settledUsage(ctx, url, key)
	if err != nil {
		return err
	}
	// A turn's wire has no answer that says what became of it, so the server's
	// settled adds and credits are given as they are: 1 an add, 2 an inferred
	// write.
	total.settled = int(after.Adds.Settled-before.Adds.Settled) + int(after.Credits.Settled-before.Credits.Settled)/2
	total.released = int(after.Adds.Released-before.Adds.Released) + int(after.Credits.Released-before.Credits.Released)/2
	total.balance = "off"
	if after.Balanced && after.Adds.Reserved == 0 && after.Credits.Reserved == 0 {
		total.balance = "ok"
	}
	printTable(out, rows)
	fmt.Fprintln(out, total)
	if !total.holds() {
		return errUntrue
	}
	return nil
}

// usage is the part of GET /v1/usage that is looked at.
type usage struct {
	Adds, Credits struct{ Reserved, Settled, Released int64 }
	Balanced      bool
}

// settledUsage waits until nothing is reserved, and so nothing is at work.
func settledUsage(ctx context.Context, url, key string) (usage, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		u, err := usageOf(ctx, url, key)
		if err != nil || u.Adds.Reserved+u.Credits.Reserved == 0 {
			return u, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return u, fmt.Errorf("tasks were still at work: %w", context.Cause(ctx))
		}
	}
}

func usageOf(ctx context.Context, url, key string) (u usage, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/usage", nil)
	if err != nil {
		return u, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return u, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return u, fmt.Errorf("%s/v1/usage answered %s: is it a reference server, and is the key its own?", url, res.Status)
	}
	return u, json.NewDecoder(res.Body).Decode(&u)
}
