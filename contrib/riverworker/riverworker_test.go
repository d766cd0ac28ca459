package riverworker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/riverworker"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/memwrite/memwrite-go/worker/workertest"
)

func quick() worker.Config {
	return worker.Config{
		Patience: 3 * time.Second, ProbeEvery: 200 * time.Millisecond, ProbeMost: 400 * time.Millisecond,
		RetryBase: 50 * time.Millisecond, RetryMost: 200 * time.Millisecond,
	}
}

// The row and the write are one transaction: both are kept, or neither, and a
// write that is kept needs no process that is still alive.
func TestAWriteIsKeptWithItsRow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, q queue) {
		ctx := t.Context()
		srv := mockserver.Run(t)
		if err := q.save(ctx, note("1", "Our office moved to Cardiff in May."), true); err != nil {
			t.Fatal(err)
		}
		if err := q.save(ctx, note("2", "We prefer invoices as PDF attachments."), false); err != nil {
			t.Fatal(err)
		}
		srv.NeverSent(t, mockserver.Match{})
		run(t, q, srv.Client(t), quick()) // another process, later
		eventually(t, "the queue is empty", func() bool { n, err := q.inFlight(ctx); return err == nil && n == 0 })
		srv.StoredOnce(t, "note-1")
		srv.NeverSent(t, mockserver.Match{Key: "note-2"})
		if n, err := q.rows(ctx); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}

func TestADeadLetterIsTheCancelledJob(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, q queue) {
		ctx := t.Context()
		srv := mockserver.Run(t)
		odd := `{"kind":"note", "id":"1","end_user":"acme","metadata":{"n":1.50,"big":12345678901234567890},"text":"Our office moved to Cardiff again."}`
		bad := []string{"not a record", "\xff\x00", odd}
		if err := q.send(ctx, note("1", "Our office moved to Cardiff in May.")); err != nil {
			t.Fatal(err)
		}
		run(t, q, srv.Client(t), quick())
		eventually(t, "the queue is empty", func() bool { n, err := q.inFlight(ctx); return err == nil && n == 0 })
		for _, data := range bad {
			if err := q.send(ctx, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the queue is empty", func() bool { n, err := q.inFlight(ctx); return err == nil && n == 0 })
		dead, err := q.dead(ctx)
		if err != nil || len(dead) != len(bad) {
			t.Fatalf("%d dead letters, %v", len(dead), err)
		}
		for i, l := range dead {
			if string(l.Data()) != bad[i] || l.Reason == "" || l.ID == "" || !strings.HasPrefix(l.Source, "river job ") {
				t.Errorf("%d: %+v", i, l)
			}
		}
		if dead[2].Identity != "note-1" || dead[2].Kind == "" {
			t.Errorf("%+v", dead[2])
		}
		srv.StoredOnce(t, "note-1")
	})
}

// A quota that is away for longer than any job's timeout: jobs are snoozed,
// none is counted out, and all of them go on when it is back.
func TestAQuotaStopLongerThanATimeout(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, q queue) {
		ctx := t.Context()
		srv := mockserver.Run(t)
		quota := srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota, Times: -1})
		cfg := quick()
		cfg.Patience, cfg.Concurrency, cfg.InHand = time.Second, 2, 4
		run(t, q, srv.Client(t), cfg)
		for i := range 20 {
			if err := q.send(ctx, note(fmt.Sprint(i), fmt.Sprintf("Customer %d wants a call on day %d.", i, i))); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the quota is met", func() bool { return quota.Fired() > 0 })
		time.Sleep(4 * time.Second) // twice a job's timeout
		if n := quota.Fired(); n > 40 {
			t.Errorf("%d writes were tried in the stop", n)
		}
		if n, err := q.inFlight(ctx); err != nil || n != 20 {
			t.Errorf("%d of 20 jobs are open, %v", n, err)
		}
		quota.Disarm()
		eventually(t, "the queue is empty", func() bool { n, err := q.inFlight(ctx); return err == nil && n == 0 })
		if dead, err := q.dead(ctx); err != nil || len(dead) != 0 {
			t.Errorf("dead letters %+v, %v", dead, err)
		}
		for i := range 20 {
			if _, ok := srv.TaskByClientRef("acme", fmt.Sprintf("note-%d", i)); !ok {
				t.Errorf("note %d is lost", i)
			}
		}
	})
}

// Stopping gives a waiting job back at once and uncounted.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, q queue) {
		srv := mockserver.Run(t)
		frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
		cfg := quick()
		cfg.Patience = time.Hour
		stop := run(t, q, srv.Client(t), cfg)
		if err := q.send(t.Context(), []byte(`{"write":"infer","kind":"note","id":"1","end_user":"acme","text":"Our office moved to Cardiff."}`)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it waits", func() bool { return len(srv.Tasks()) == 1 })
		began := time.Now()
		stop()
		if d := time.Since(began); d > time.Minute {
			t.Errorf("it took %v to stop", d)
		}
		frozen.Disarm()
		run(t, q, srv.Client(t), cfg)
		eventually(t, "the queue is empty", func() bool { n, err := q.inFlight(t.Context()); return err == nil && n == 0 })
		srv.StoredOnce(t, "note-1")
	})
}

func TestTimeoutIsNeverEndless(t *testing.T) {
	t.Parallel()
	w, err := riverworker.New(mockserver.Run(t).Client(t), riverworker.Config{})
	if err != nil || w.Timeout(nil) <= 10*time.Minute {
		t.Error(err)
	}
}

func TestDrillPostgres(t *testing.T) { drill(t, "river-postgres") }
func TestDrillSQLite(t *testing.T)   { drill(t, "river-sqlite") }

func drill(t *testing.T, name string) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const env = "MEMWRITE_DRILL_RIVER"
	at := func(where string, fresh bool) queue {
		if name == "river-postgres" {
			return openPostgres(t, where, fresh)
		}
		return openSQLite(t, where, fresh)
	}
	broker := workertest.Broker{Name: name, Worker: func(ctx context.Context, client *memwrite.Client, cfg worker.Config) error {
		return at(os.Getenv(env), false).work(ctx, client, cfg)
	}}
	if !workertest.Child() {
		where := filepath.Join(t.TempDir(), "queue.db")
		if name == "river-postgres" {
			where = postgresURL(t)
		}
		q := at(where, true)
		broker.Env = []string{env + "=" + where}
		broker.Send, broker.Dead, broker.InFlight = q.send, q.dead, q.inFlight
	}
	workertest.Drill(t, broker)
}
