package watermillworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/watermillworker"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/memwrite/memwrite-go/worker/workertest"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

func quick() worker.Config {
	return worker.Config{
		Patience: 2 * time.Second, ProbeEvery: 200 * time.Millisecond, ProbeMost: 400 * time.Millisecond,
		RetryBase: 50 * time.Millisecond, RetryMost: 200 * time.Millisecond,
	}
}

func note(id, text string) []byte {
	data, _ := json.Marshal(map[string]any{"kind": "note", "id": id, "end_user": "acme", "text": text})
	return data
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func TestMessagesOnRabbitMQAreWrittenAndBadOnesBuried(t *testing.T) {
	t.Parallel()
	r := newRabbit(t, nil)
	srv := mockserver.Run(t)
	poison := srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: -1, Key: "note-0"})
	client := srv.Client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: time.Millisecond, MaxTries: 2}))
	for _, data := range [][]byte{
		note("0", "The poisoned note comes first in the queue."), []byte("not a record"),
		note("1", "Our office moved to Cardiff in May."), note("1", "Our office moved to Cardiff in May."), note("2", "We prefer invoices as PDF attachments."),
	} {
		if err := r.send(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t, client, quick(), 1)
	// One consumer, and yet the others pass.
	eventually(t, "the sound notes are stored", func() bool { return len(srv.Records()) == 2 })
	poison.Disarm()
	eventually(t, "the poisoned note is stored", func() bool { return len(srv.Records()) == 3 })
	eventually(t, "the queue is empty", func() bool { n, err := r.inFlight(t.Context()); return err == nil && n == 0 })
	dead, err := r.dead(t.Context())
	if err != nil || len(dead) != 1 || string(dead[0].Data()) != "not a record" {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
	srv.StoredOnce(t, "note-1")
}

// The quota is away while every message would be delivered more often than the
// queue allows. RabbitMQ would drop it at the fourth Nack.
func TestAQuotaStopLongerThanTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	r := newRabbit(t, amqp091.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(3)})
	srv := mockserver.Run(t)
	quota := srv.Arm(mockserver.Fault{Kind: mockserver.ExhaustQuota, Times: -1})
	cfg := quick()
	cfg.Patience = 300 * time.Millisecond
	for i := range 10 {
		if err := r.send(t.Context(), note(fmt.Sprint(i), fmt.Sprintf("Customer %d wants a call on day %d.", i, i))); err != nil {
			t.Fatal(err)
		}
	}
	r.run(t, srv.Client(t), cfg, 2)
	eventually(t, "the quota is met", func() bool { return quota.Fired() > 0 })
	time.Sleep(5 * time.Second) // more than ten times through the queue
	quota.Disarm()
	eventually(t, "all are stored", func() bool { return len(srv.Records()) == 10 })
	if dead, err := r.dead(t.Context()); err != nil || len(dead) != 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

func TestRunDrains(t *testing.T) {
	t.Parallel()
	r := newRabbit(t, nil)
	srv := mockserver.Run(t)
	frozen := srv.Arm(mockserver.Fault{Kind: mockserver.FreezeRunner, Times: -1})
	cfg := quick()
	cfg.Patience = time.Hour
	stop := r.run(t, srv.Client(t), cfg, 2)
	if err := r.send(t.Context(), []byte(`{"write":"infer","kind":"note","id":"1","end_user":"acme","text":"Our office moved to Cardiff."}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits", func() bool { return len(srv.Tasks()) == 1 })
	began := time.Now()
	stop()
	if d := time.Since(began); d > time.Minute {
		t.Errorf("it took %v to stop", d)
	}
	frozen.Disarm()
	r.run(t, srv.Client(t), cfg, 1)
	eventually(t, "the note is stored", func() bool { return len(srv.Records()) == 1 })
	srv.StoredOnce(t, "note-1")
}

// Without a broker: what the middleware does with a program's own calls.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: 4, Key: "note-1"})
	client := srv.Client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: time.Millisecond, MaxTries: 2}))
	broker := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 10, Persistent: true}, watermill.NopLogger{})
	w, err := watermillworker.New(client, watermillworker.Config{Publisher: broker, Topic: "in", Dead: "dead", Worker: quick()})
	if err != nil {
		t.Fatal(err)
	}
	router := message.NewDefaultRouter(watermill.NopLogger{})
	router.AddMiddleware(w.Middleware(func(m *message.Message) string { return m.Metadata.Get("id") }))
	router.AddHandler("own", "in", broker, "out", broker, func(msg *message.Message) ([]*message.Message, error) {
		res, err := client.Add(msg.Context(), memwrite.AddRequest{Text: string(msg.Payload), EndUserID: "acme", Ref: memwrite.NewRef("note", msg.Metadata.Get("id"))})
		produced := []*message.Message{message.NewMessage(watermill.NewUUID(), []byte("done"))}
		if err == nil && res == nil {
			err = errors.New("no result")
		}
		return produced, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := w.Run(ctx, router); err != nil {
			t.Error(err)
		}
	})
	<-router.Running()
	out, _ := broker.Subscribe(ctx, "out")
	dead, _ := broker.Subscribe(ctx, "dead")
	for id, text := range map[string]string{"1": "Our office moved to Cardiff in May.", "2": " "} {
		m := message.NewMessage(watermill.NewUUID(), []byte(text))
		m.Metadata.Set("id", id)
		if err := broker.Publish("in", m); err != nil {
			t.Fatal(err)
		}
	}
	(<-out).Ack()
	letter := <-dead
	letter.Ack()
	if letter.Metadata.Get(watermillworker.IdentityKey) != "2" || w.Counts().Retried == 0 {
		t.Errorf("%v %+v", letter.Metadata, w.Counts())
	}
	cancel()
	all.Wait()
	if len(out) != 0 {
		t.Error("published more than once")
	}
	srv.StoredOnce(t, "note-1")
}

func TestWhatWouldLoseMessagesIsRefused(t *testing.T) {
	t.Parallel()
	client := mockserver.Run(t).Client(t)
	broker := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	for _, cfg := range []watermillworker.Config{
		{Topic: "in", Dead: "dead"}, {Publisher: broker, Dead: "dead"}, {Publisher: broker, Topic: "in"},
		{Publisher: broker, Topic: "in", Dead: "in"}, {Publisher: broker, Topic: "in", Dead: "dead", Turn: -1},
	} {
		if _, err := watermillworker.New(client, cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

func TestDrill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const envURL, envName = "MEMWRITE_DRILL_AMQP_URL", "MEMWRITE_DRILL_AMQP_QUEUE"
	broker := workertest.Broker{Name: "rabbitmq", Worker: func(ctx context.Context, client *memwrite.Client, cfg worker.Config) error {
		return openRabbit(t, os.Getenv(envURL), os.Getenv(envName), nil).work(ctx, client, cfg, 12)
	}}
	if !workertest.Child() {
		r := newRabbit(t, nil)
		broker.Env = []string{envURL + "=" + r.url, envName + "=" + r.name}
		broker.Send, broker.Dead, broker.InFlight = r.send, r.dead, r.inFlight
	}
	workertest.Drill(t, broker)
}
