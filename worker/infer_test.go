package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
)

func TestAnInferredWriteIsAcknowledgedOnItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, w := inBubble(t, worker.Config{}, mockserver.RealTimes())
		srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit})
		began := time.Now()
		want(t, w.Handle(t.Context(), inferred("1", "acme", fact(1))), memwrite.Ack)
		if time.Since(began) < 10*time.Second {
			t.Error("acknowledged before the event ended")
		}
		srv.StoredOnce(t, "note-1")
	})
}

func TestAFailedEventIsRedrivenThreeTimesAndThenDead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind     mockserver.Kind
		times    int
		want     memwrite.Action
		redrives int
	}{
		"passes at the second redrive": {mockserver.ProviderTimeout, 10, memwrite.Ack, 2},
		"never passes":                 {mockserver.ProviderTimeout, -1, memwrite.DeadLetter, 3},
		"cannot pass":                  {mockserver.ProviderInvalid, -1, memwrite.DeadLetter, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, w := inBubble(t, worker.Config{})
				srv.Arm(mockserver.Fault{Kind: tc.kind, Times: tc.times, Key: "note-1"})
				out := w.Handle(t.Context(), inferred("1", "acme", fact(1)))
				want(t, out, tc.want)
				if n := w.Counts().Redriven; n != int64(tc.redrives) {
					t.Errorf("%d redrives, want %d", n, tc.redrives)
				}
				if tc.want == memwrite.DeadLetter && (out.Dead.EventID == "" || out.Dead.Redrives != tc.redrives || out.Dead.Identity != "note-1") {
					t.Errorf("%+v", out.Dead)
				}
				want(t, w.Handle(t.Context(), inferred("2", "acme", fact(2))), memwrite.Ack)
			})
		})
	}
}

// While a delivery waits for its event it keeps no slot; a closing worker gives
// it back, and the next one to get it goes on waiting for the same event.
func TestAWaitForAnEventKeepsNoSlotAndIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, w := inBubble(t, worker.Config{Concurrency: 1})
		frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1, Key: "note-1"})
		var out worker.Outcome
		var waits sync.WaitGroup
		waits.Go(func() { out = w.Handle(t.Context(), inferred("1", "acme", fact(1))) })
		time.Sleep(time.Second)
		want(t, w.Handle(t.Context(), note("2", "bluebird", fact(2))), memwrite.Ack)
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		waits.Wait()
		want(t, out, memwrite.GiveBack)
		frozen.Disarm()
		want(t, newWorker(t, srv.Client(t), worker.Config{}).Handle(t.Context(), inferred("1", "acme", fact(1))), memwrite.Ack)
		srv.StoredOnce(t, "note-1")
	})
}

func TestAWaitEndsWithPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, w := inBubble(t, worker.Config{Patience: time.Minute})
		frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1, Key: "note-1"})
		defer frozen.Disarm()
		out := w.Handle(t.Context(), inferred("1", "acme", fact(1)))
		want(t, out, memwrite.RetryAfter)
		if !errors.Is(out.Err, memwrite.ErrStillPending) {
			t.Error(out.Err)
		}
	})
}

// Acknowledged on the receipt, and yet nothing that fails is lost: not even
// when the process ends in between.
func TestAJournalCatchesFailuresAfterTheReceipt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := mockserver.Run(t, mockserver.InProcess())
		client := srv.Client(t)
		path := filepath.Join(t.TempDir(), "accepted.jsonl")
		var mu sync.Mutex
		var dead []worker.DeadLetter
		keep := func(_ context.Context, d worker.DeadLetter) error {
			mu.Lock()
			defer mu.Unlock()
			dead = append(dead, d)
			if len(dead) == 1 {
				return errors.New("the dead letters cannot be kept now")
			}
			return nil
		}
		journal, err := worker.OpenJournal(client, path, keep, worker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorker(t, client, worker.Config{Watcher: journal})
		frozen := []*mockserver.Armed{
			srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1, Key: "note-1"}), srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1, Key: "note-2"}),
		}
		srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1, Key: "note-2"})
		bad := inferred("2", "acme", fact(2))
		for _, d := range []worker.Delivery{inferred("1", "acme", fact(1)), bad, bad} {
			want(t, w.Handle(t.Context(), d), memwrite.Ack)
		}
		if n := journal.Pending(); n != 2 {
			t.Errorf("%d pending, want 2", n)
		}
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
		if err := journal.Watch(t.Context(), worker.Accepted{}); err == nil {
			t.Error("a closed journal took a write")
		}
		// What a process left behind that was killed in the middle of a line.
		f, _ := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		f.WriteString(`{"ended":"task_`)
		f.Close()
		for _, a := range frozen {
			a.Disarm()
		}

		again, err := worker.OpenJournal(client, path, keep, worker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if again.Pending() != 0 || len(dead) != 2 || dead[1].Identity != "note-2" || string(dead[1].Data()) != string(bad.Data) || dead[1].EventID == "" {
			t.Errorf("%d pending, dead letters %+v", again.Pending(), dead)
		}
		srv.StoredOnce(t, "note-1")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Writes that ended while nobody looked end while the journal is being opened.
func TestAJournalIsOpenedWhileItsWritesEnd(t *testing.T) {
	t.Parallel()
	const writes = 100
	synctest.Test(t, func(t *testing.T) {
		srv := mockserver.Run(t, mockserver.InProcess())
		client := srv.Client(t)
		path := filepath.Join(t.TempDir(), "accepted.jsonl")
		open := func() *worker.Journal {
			keep := func(context.Context, worker.DeadLetter) error { return nil }
			journal, err := worker.OpenJournal(client, path, keep, worker.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return journal
		}
		journal := open()
		w := newWorker(t, client, worker.Config{Watcher: journal})
		frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
		for i := range writes {
			want(t, w.Handle(t.Context(), inferred(strconv.Itoa(i), "acme", fact(i))), memwrite.Ack)
		}
		if err := journal.Close(); err != nil || journal.Pending() == 0 {
			t.Fatalf("%d pending, %v", journal.Pending(), err)
		}
		frozen.Disarm()
		time.Sleep(time.Hour)

		journal = open()
		time.Sleep(time.Hour)
		if n := journal.Pending(); n != 0 {
			t.Errorf("%d of %d are pending", n, writes)
		}
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAJournalThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("not a journal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, _ := memwrite.New(memwrite.WithFishMem("http://127.0.0.1:1", "k"))
	if _, err := worker.OpenJournal(client, path, func(context.Context, worker.DeadLetter) error { return nil }, worker.Config{}); err == nil {
		t.Error("overwritten")
	}
}

// A program that makes its own calls gets the same outcomes, redrives included.
func TestDoHandlesAProgramsOwnCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := mockserver.Run(t, mockserver.InProcess())
		client := srv.Client(t)
		w := newWorker(t, client, worker.Config{})
		srv.Arm(mockserver.Fault{Kind: mockserver.ProviderTimeout, Times: -1, Key: "note-1"})
		d := worker.Delivery{Data: []byte("anything"), Attempt: 1}
		write := func(ctx context.Context) error {
			_, err := client.AddAndWait(ctx, memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "acme"}, Content: fact(1)})
			return err
		}
		for range memwrite.MaxRedrives {
			want(t, w.Do(t.Context(), d, "note-1", "", write), memwrite.RetryAfter)
		}
		out := w.Do(t.Context(), d, "note-1", "", write)
		want(t, out, memwrite.DeadLetter)
		if out.Dead.Redrives != 3 || out.Dead.Identity != "note-1" || string(out.Dead.Raw) != "anything" {
			t.Errorf("%+v", out.Dead)
		}
		want(t, w.Do(t.Context(), d, "x", "", func(context.Context) error { return nil }), memwrite.Ack)
	})
}
