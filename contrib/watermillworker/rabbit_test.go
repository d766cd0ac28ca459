package watermillworker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/watermillworker"
	"github.com/memwrite/memwrite-go/worker"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// rabbitURL is the running RabbitMQ.
func rabbitURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("MEMWRITE_AMQP_URL")
	if url == "" {
		url = "amqp://guest:guest@127.0.0.1:5672/"
	}
	conn, err := amqp091.Dial(url)
	if err != nil {
		if os.Getenv("MEMWRITE_REQUIRE_SERVICES") == "1" {
			t.Fatalf("RabbitMQ is required: %v", err)
		}
		t.Skipf("no RabbitMQ at MEMWRITE_AMQP_URL or on the standard port: %v", err)
	}
	_ = conn.Close()
	return url
}

// rabbit is one queue and its dead letters.
type rabbit struct {
	url, name string
	args      amqp091.Table
	conn      *amqp091.Connection
	publisher *amqp.Publisher
	empty     time.Time // since when it is
}

func (r *rabbit) settings() amqp.Config {
	c := amqp.NewDurableQueueConfig(r.url)
	c.Publish.ConfirmDelivery = true
	c.Queue.Arguments = r.args
	return c
}

func openRabbit(t *testing.T, url, name string, args amqp091.Table) *rabbit {
	t.Helper()
	r := &rabbit{url: url, name: name, args: args}
	var err error
	if r.publisher, err = amqp.NewPublisher(r.settings(), watermill.NopLogger{}); err != nil {
		t.Fatal(err)
	}
	if r.conn, err = amqp091.Dial(url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.publisher.Close(); _ = r.conn.Close() })
	return r
}

// newRabbit makes the two queues, and drops them with the test.
func newRabbit(t *testing.T, args amqp091.Table) *rabbit {
	t.Helper()
	r := openRabbit(t, rabbitURL(t), fmt.Sprintf("memwrite-%d-%d", os.Getpid(), time.Now().UnixNano()), args)
	sub, err := amqp.NewSubscriber(r.settings(), watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for _, topic := range []string{r.name, r.name + ".dead"} {
		if err := sub.SubscribeInitialize(topic); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if ch, err := r.conn.Channel(); err == nil {
			_, _ = ch.QueueDelete(r.name, false, false, false)
			_, _ = ch.QueueDelete(r.name+".dead", false, false, false)
		}
	})
	return r
}

func (r *rabbit) send(_ context.Context, data []byte) error {
	return r.publisher.Publish(r.name, message.NewMessage(watermill.NewUUID(), data))
}

// work is a worker of its own connection, until ctx ends.
func (r *rabbit) work(ctx context.Context, client *memwrite.Client, cfg worker.Config, consumers int) error {
	sub, err := amqp.NewSubscriber(r.settings(), watermill.NopLogger{})
	if err != nil {
		return err
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	w, err := watermillworker.New(client, watermillworker.Config{
		Publisher: r.publisher, Topic: r.name, Dead: r.name + ".dead", Turn: 50 * time.Millisecond, Worker: cfg,
	})
	if err != nil {
		return err
	}
	if err := w.AddTo(router, "notes", sub, consumers); err != nil {
		return err
	}
	return w.Run(ctx, router)
}

func (r *rabbit) ready(queue string) (int, error) {
	ch, err := r.conn.Channel()
	if err != nil {
		return 0, err
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, r.args)
	return q.Messages, err
}

// inFlight counts what waits in the queue. RabbitMQ does not say what is with a
// consumer, so an empty queue has to stay empty for longer than a consumer
// keeps a message.
func (r *rabbit) inFlight(context.Context) (int, error) {
	n, err := r.ready(r.name)
	switch {
	case err != nil || n > 0:
		r.empty = time.Time{}
		return n, err
	case r.empty.IsZero():
		r.empty = time.Now()
	case time.Since(r.empty) > 6*time.Second:
		return 0, nil
	}
	return 1, nil
}

func (r *rabbit) dead(context.Context) ([]worker.DeadLetter, error) {
	ch, err := r.conn.Channel()
	if err != nil {
		return nil, err
	}
	defer ch.Close() // what was read goes back
	var out []worker.DeadLetter
	for {
		msg, ok, err := ch.Get(r.name+".dead", false)
		if err != nil || !ok {
			return out, err
		}
		var l worker.DeadLetter
		if err := json.Unmarshal(msg.Body, &l); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
}

func (r *rabbit) run(t *testing.T, client *memwrite.Client, cfg worker.Config, consumers int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.work(ctx, client, cfg, consumers) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}
