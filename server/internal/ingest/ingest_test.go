package ingest_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/server/internal/ingest"
	"github.com/memwrite/memwrite-go/worker"
)

func TestEveryBadLineIsNamedAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := strings.Join([]string{
		"\xef\xbb\xbf" + note(1),  // 1: a byte order mark
		note(2) + "\r",            // 2: CR LF
		`{"kind":"note","id":"3"`, // 3: malformed
		"",                        // 4
		`{"kind":"note","id":"5","end_user":"u","text":"` + strings.Repeat("x", 5<<20) + `"}`,            // 5: 5 MB
		`{"kind":"note","id":"1","end_user":"customer-1","text":"Another text under the id of line 1."}`, // 6
		"{\"kind\":\"note\",\"id\":\"7\",\"end_user\":\"u\",\"text\":\"not \xff UTF-8\"}",                // 7
		note(1), // 8: line 1 again
		`{"kind":"note","id":"9","end_user":"u","text":"Too small"}`,                          // 9: refused by the service
		`{"write":"verbatim","kind":"note","id":"10","end_user":"u","text":"Word for word."}`, // 10
		note(11), // 11: without an end of line
	}, "\n")
	c := d.run(t, d.config(file))
	want := "1 note\n1 stored\n2 note\n2 stored\n3 rejected\n5 rejected\n6 rejected\n7 rejected\n8 duplicate\n9 rejected\n10 stored\n11 stored\n"
	report := d.report(t)
	if got := outcomes(report); got != want {
		t.Errorf("report\n%swant\n%s", got, want)
	}
	for _, l := range report {
		if strings.Contains(l.Reason, "Another text") || l.Outcome == ingest.Rejected && l.Reason == "" {
			t.Errorf("%+v", l)
		}
	}
	if c.Records != 10 || c.Stored != 4 || c.Rejected != 5 || c.Duplicate != 1 || c.Lines != 11 || c.Incomplete {
		t.Errorf("%+v", c)
	}
	if n := len(d.srv.Records()); n != 4 {
		t.Errorf("%d memories", n)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := "\xef\xbb\xbfid,kind,version,end_user,text,tags\r\n" +
		"1,note,,acme,\"Invoices go to \"\"Ann\"\", by post.\",a; b\r\n" +
		"2,note,2,acme,\"A text\nover two lines is one record.\",\r\n" + // 3, 4
		"3,note,two,acme,A version that is no number.,\r\n" + // 5
		"4,note,,acme\r\n" + // 6: too few fields
		"5,note,,acme,\"A quote that is never closed,\r\n" + // 7
		"6,note,,acme,The line behind it is read.,\r\n" + // 8
		"\r\n" +
		"7,note,,acme,\xff\xfe is not UTF-8,\r\n" + // 10
		"8,note,,acme,The last line has no end.," // 11
	cfg := d.config(file)
	cfg.CSV = true
	c := d.run(t, cfg)
	want := "1 note\n2 stored\n3 stored\n5 rejected\n6 rejected\n7 rejected\n8 stored\n10 rejected\n11 stored\n"
	if got := outcomes(d.report(t)); got != want {
		t.Errorf("%+v\nreport\n%swant\n%s", c, got, want)
	}
	found := false
	for _, r := range d.srv.Records() {
		found = found || r.Text == "A text\nover two lines is one record."
	}
	if _, ok := d.srv.TaskByClientRef("acme", "note-2-v2"); !ok || !found {
		t.Error("the record over two lines is not what it was")
	}
}

// Interrupted and started again, and again: every record once, and what was
// done is not sent.
func TestASecondRunGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var lines []string
	for i := range 200 {
		lines = append(lines, note(i))
	}
	file := strings.Join(lines, "\n") + "\n"
	ctx, cancel := context.WithCancel(t.Context())
	cfg := d.config(file)
	cfg.Concurrency = 2
	cfg.Progress = func(c ingest.Counts) {
		if c.Stored > 20 {
			cancel()
		}
	}
	// Progress is told of five times a second, so the service is slow.
	slow := d.srv.Arm(mockserver.Fault{Kind: mockserver.Stall, Delay: 10 * time.Millisecond, Times: -1})
	first, err := ingest.Run(ctx, d.client, cfg)
	slow.Disarm()
	if err != nil || !first.Incomplete || first.Stored == 0 {
		t.Fatal(first, err)
	}
	second := d.run(t, d.config(file))
	if second.Before != first.Stored || second.Before+second.Stored+second.Already != 200 || second.Incomplete {
		t.Errorf("%+v, then %+v", first, second)
	}
	sent := len(d.srv.Journal())
	third := d.run(t, d.config(file))
	if third.Before != 200 || len(d.srv.Journal()) != sent {
		t.Errorf("%+v, %d requests", third, len(d.srv.Journal())-sent)
	}
	// An edited line under its old id is not taken for done.
	edited := d.run(t, d.config(strings.Replace(file, "Customer 7 asked", "Customer 7 begged", 1)))
	if edited.Before != 199 || edited.Rejected != 1 {
		t.Errorf("%+v", edited)
	}
	if n := len(d.srv.Records()); n != 200 {
		t.Errorf("%d memories", n)
	}
	// Without a state the identities alone keep them single.
	bare := d.config(file)
	bare.State, bare.Report = "", ""
	if c := d.run(t, bare); c.Already != 200 || len(d.srv.Records()) != 200 {
		t.Errorf("%+v", c)
	}
}

func TestAHoldEndsTheRunAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	quota := d.srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota, Skip: 10, Times: -1})
	var lines []string
	for i := range 100 {
		lines = append(lines, note(i))
	}
	file := strings.Join(lines, "\n")
	c := d.run(t, d.config(file))
	if !c.Holding || c.HeldFor == "" || c.Held == 0 || !c.Incomplete || c.Rejected != 0 || quota.Fired() > 20 {
		t.Errorf("%+v, %d refused", c, quota.Fired())
	}
	quota.Disarm()
	if c = d.run(t, d.config(file)); c.Before+c.Stored+c.Already != 100 || c.Holding || c.Incomplete {
		t.Errorf("%+v", c)
	}
	if n := len(d.srv.Records()); n != 100 {
		t.Errorf("%d memories", n)
	}
}

func TestWaitGoesOnWhenTheQuotaIsBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	quota := d.srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota, Times: 3})
	cfg := d.config(note(1) + "\n" + note(2))
	cfg.WaitHold, cfg.Worker.ProbeEvery, cfg.Worker.ProbeMost = true, 20*time.Millisecond, 40*time.Millisecond
	if c := d.run(t, cfg); c.Stored != 2 || quota.Fired() != 3 {
		t.Errorf("%+v", c)
	}
}

func TestWhatTheServiceDoesNotTakeNowIsUnfinished(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	down := d.srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: -1, Key: "note-1"})
	file := note(1) + "\n" + note(2)
	cfg := d.config(file)
	cfg.Attempts = 2
	if c := d.run(t, cfg); c.Unfinished != 1 || c.Stored != 1 || down.Fired() != 4 {
		t.Errorf("%+v, %d tries", c, down.Fired())
	}
	down.Disarm()
	if c := d.run(t, d.config(file)); c.Before != 1 || c.Stored != 1 {
		t.Errorf("%+v", c)
	}
}

func TestADryRunSendsNothingAndFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	cfg := d.config(note(1) + "\n{\n" + note(1) + "\n" + strings.Replace(note(1), "day", "week", 1))
	cfg.DryRun = true
	c := d.run(t, cfg)
	if c.Valid != 1 || c.Rejected != 2 || c.Duplicate != 1 || len(d.srv.Journal()) != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := os.Stat(cfg.State); err == nil {
		t.Error("a dry run left a state")
	}
}

func TestDeadLettersAreWrittenAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w, err := worker.New(d.client, worker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d.srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 422, Times: 1})
	out := w.Handle(t.Context(), worker.Delivery{Data: []byte(note(1))})
	letter, _ := json.Marshal(out.Dead)
	cfg := d.config(string(letter) + "\n" + `{"id":"x"}`)
	cfg.DeadLetter = true
	if c := d.run(t, cfg); out.Action != memwrite.DeadLetter || c.Stored != 1 || c.Rejected != 1 {
		t.Errorf("%v %+v", out.Action, c)
	}
}

func TestAStateIsOneProgramsAtATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	slow := d.srv.Arm(mockserver.Fault{Kind: mockserver.Stall})
	done := make(chan error, 1)
	go func() {
		_, err := ingest.Run(t.Context(), d.client, d.config(note(1)))
		done <- err
	}()
	for slow.Fired() == 0 {
		time.Sleep(time.Millisecond)
	}
	other := d.config(note(1))
	other.Report = ""
	if _, err := ingest.Run(t.Context(), d.client, other); err == nil || !strings.Contains(err.Error(), "another ingest") {
		t.Errorf("error %v", err)
	}
	slow.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "text"), []byte("my notes, not a state, and more than a page of them "+strings.Repeat("x", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	other.State = filepath.Join(d.dir, "text")
	if _, err := ingest.Run(t.Context(), d.client, other); err == nil {
		t.Error("overwrote a file that is no state")
	}
}

// A file is read as it is sent: what is in memory does not grow with it.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200 MB")
	}
	d := newDesk(t)
	line := note(1)
	line = line[:len(line)-2] + strings.Repeat("y", 200_000) + "\"}\n"
	cfg := d.config("")
	cfg.In = io.LimitReader(&repeated{text: []byte(line)}, 200<<20)
	cfg.DryRun = true
	most := uint64(0)
	cfg.Progress = func(ingest.Counts) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	if c := d.run(t, cfg); c.Records < 1000 {
		t.Errorf("%+v", c)
	}
	if most > 64<<20 {
		t.Errorf("%d MiB in use", most>>20)
	}
}

type repeated struct {
	text []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
