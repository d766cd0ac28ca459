package natsworker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/natsworker"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/memwrite/memwrite-go/worker/workertest"
	"github.com/nats-io/nats.go/jetstream"
)

func note(id, text string) []byte {
	data, _ := json.Marshal(map[string]any{"kind": "note", "id": id, "end_user": "acme", "text": text})
	return data
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestMessagesAreWrittenAndBadOnesBuried(t *testing.T) {
	t.Parallel()
	q := newQueue(t, embedded(t))
	srv := mockserver.Run(t)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: 12, Key: "note-3"})
	client := srv.Client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: time.Millisecond, MaxTries: 2}))
	for _, data := range [][]byte{
		note("1", "Our office moved to Cardiff in May."), note("1", "Our office moved to Cardiff in May."),
		note("3", "We prefer invoices as PDF attachments."), []byte("not a record"), []byte("not a record"),
	} {
		if err := q.send(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cfg := q.config()
	cfg.Worker.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w, stop := q.run(t, client, cfg)
	eventually(t, "the queue is empty", q.empty(t))
	stop()
	for _, want := range []string{"takes messages\" stream=" + q.name + " consumer=memwrite concurrency=8", "has ended\" delivered=", "acked=3", "dead=2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s\n%s", want, &log)
		}
	}
	srv.StoredOnce(t, "note-1")
	srv.StoredOnce(t, "note-3")
	dead, err := q.dead(t.Context())
	if err != nil || len(dead) != 1 || string(dead[0].Data()) != "not a record" || dead[0].Reason != "the message is not a record: the JSON is not a record's: syntax error at byte 2" || !strings.HasPrefix(dead[0].Source, "stream "+q.name+" message ") {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	if c := w.Counts(); c.Acked != 3 || c.Dead != 2 || c.Retried == 0 {
		t.Errorf("%+v", c)
	}
}

// A write that takes longer than AckWait is not delivered to another worker.
func TestTheServerIsToldThatAWriteIsInProgress(t *testing.T) {
	t.Parallel()
	q := newQueue(t, embedded(t))
	srv := mockserver.Run(t)
	slow := srv.Arm(mockserver.Fault{Kind: mockserver.Stall, Key: "note-1"})
	cfg := q.config()
	cfg.AckWait = 2 * time.Second
	w, _ := q.run(t, srv.Client(t), cfg)
	if err := q.send(t.Context(), note("1", "Our office moved to Cardiff in May.")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the write hangs", func() bool { return slow.Fired() == 1 })
	time.Sleep(2 * cfg.AckWait)
	slow.Release()
	eventually(t, "the queue is empty", q.empty(t))
	if c := w.Counts(); c.Delivered != 1 {
		t.Errorf("%+v", c)
	}
}

// The quota is away for many times AckWait. Nothing but the probe is delivered
// meanwhile, nothing dies, and all of it goes on when the quota is back.
func TestAQuotaStopLongerThanAnyRedelivery(t *testing.T) {
	t.Parallel()
	q := newQueue(t, embedded(t))
	srv := mockserver.Run(t)
	quota := srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota, Times: -1})
	cfg := q.config()
	cfg.AckWait = 300 * time.Millisecond
	cfg.Worker.ProbeEvery, cfg.Worker.ProbeMost, cfg.Worker.Concurrency, cfg.Worker.InHand = 200*time.Millisecond, 400*time.Millisecond, 2, 4
	w, _ := q.run(t, srv.Client(t), cfg)
	for i := range 30 {
		if err := q.send(t.Context(), note(fmt.Sprint(i), fmt.Sprintf("Customer %d wants a call on day %d.", i, i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the worker holds", func() bool { return w.Counts().Holding })
	time.Sleep(20 * cfg.AckWait) // MaxDeliver's usual five would be long over
	c := w.Counts()
	if c.Dead != 0 || c.Acked != 0 || c.Holds != 1 {
		t.Errorf("%+v", c)
	}
	if probes := quota.Fired(); probes < 3 || probes > 40 {
		t.Errorf("%d writes were tried in the stop", probes)
	}
	quota.Disarm()
	eventually(t, "the queue is empty", q.empty(t))
	for i := range 30 {
		if _, ok := srv.TaskByClientRef("acme", fmt.Sprintf("note-%d", i)); !ok {
			t.Errorf("note %d is lost", i)
		}
	}
	if dead, err := q.dead(t.Context()); err != nil || len(dead) != 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

func TestWhatWouldLoseMessagesIsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t, embedded(t))
	client := mockserver.Run(t).Client(t)
	for name, change := range map[string]func(*natsworker.Config){
		"no stream":                   func(c *natsworker.Config) { c.Stream = "" },
		"no dead":                     func(c *natsworker.Config) { c.Dead = "" },
		"dead letters into the queue": func(c *natsworker.Config) { c.Dead = "in." + q.name },
		"a stream that is not there":  func(c *natsworker.Config) { c.Stream = "NOBODY" },
		"MaxDeliver": func(c *natsworker.Config) {
			c.Durable = "limited"
			_, err := q.js.CreateConsumer(t.Context(), q.name, jetstream.ConsumerConfig{Durable: "limited", MaxDeliver: 5, AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "in." + q.name})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		cfg := q.config()
		change(&cfg)
		if _, err := natsworker.New(t.Context(), q.js, client, cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
		_ = q.js.DeleteConsumer(t.Context(), q.name, "limited")
		_ = q.js.DeleteConsumer(t.Context(), q.name, "memwrite")
	}
}

// Run ends with its context and gives back what it has not finished, at once.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	q := newQueue(t, embedded(t))
	srv := mockserver.Run(t)
	frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
	cfg := q.config()
	cfg.AckWait = time.Hour
	w, stop := q.run(t, srv.Client(t), cfg)
	if err := q.send(t.Context(), []byte(`{"write":"infer","kind":"note","id":"1","end_user":"acme","text":"Our office moved to Cardiff."}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return w.Counts().InHand == 1 })
	stop()
	frozen.Disarm()
	q.run(t, srv.Client(t), cfg)
	eventually(t, "another worker has it, long before AckWait", q.empty(t))
	srv.StoredOnce(t, "note-1")
}

func TestDrill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const envURL, envName = "MEMWRITE_DRILL_NATS_URL", "MEMWRITE_DRILL_NATS_QUEUE"
	broker := workertest.Broker{Limit: 60 * time.Second, Name: "nats", Worker: func(ctx context.Context, client *memwrite.Client, cfg worker.Config) error {
		q := connect(t, os.Getenv(envURL), os.Getenv(envName))
		set := q.config()
		set.Worker = cfg
		w, err := natsworker.New(ctx, q.js, client, set)
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}}
	if !workertest.Child() {
		url := running(t)
		q := newQueue(t, url)
		broker.Env = []string{envURL + "=" + url, envName + "=" + q.name}
		broker.Send, broker.Dead, broker.InFlight = q.send, q.dead, q.inFlight
	}
	workertest.Drill(t, broker)
}
