// Package watermillworker runs a memwrite worker behind Watermill, and so on
// RabbitMQ, Kafka, SQS, Pub/Sub, Redis Streams and whatever else Watermill has
// a subscriber for.
//
//	w, err := watermillworker.New(client, watermillworker.Config{
//		Publisher: publisher, Topic: "notes", Dead: "notes.dead",
//	})
//	err = w.AddTo(router, "notes", subscriber, 8)
//	err = w.Run(ctx, router) // until ctx ends
//
// Watermill knows Ack and Nack alone, and a Nack comes back at once, or counts,
// or blocks a partition. So a message that shall come again later is published
// to its own topic anew and then acknowledged: it counts nowhere, and those
// behind it go first. A process that is killed between the two leaves a copy,
// which its identity makes harmless.
//
// The Publisher must not return before the broker has the message. For AMQP
// that is Publish.ConfirmDelivery in its settings; without it a broker that
// ends in that moment loses the message.
package watermillworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
)

// Metadata of messages that were published again, and of dead letters.
const (
	AttemptKey   = "memwrite_attempt"    // deliveries so far
	NotBeforeKey = "memwrite_not_before" // RFC 3339; a delivery that is early goes to the end again
	IdentityKey  = "memwrite_identity"   // of a dead letter
	ReasonKey    = "memwrite_reason"     // of a dead letter
)

// Config says where messages go that are not acknowledged.
type Config struct {
	Publisher message.Publisher
	Topic     string // the queue's own: messages that shall come again
	Dead      string // dead letters
	// Turn is how long an early message is kept at most before the next one
	// has its turn; 1 s.
	Turn time.Duration
	// Drain is how long writes on their way may take when Run ends; 20 s.
	Drain time.Duration

	// Worker's Patience must be below the time a broker lets a message be in
	// work: 30 minutes on RabbitMQ, the visibility timeout on SQS.
	Worker worker.Config
}

// Worker handles the messages of one topic.
type Worker struct {
	cfg  Config
	core *worker.Worker
	log  *slog.Logger
}

// New makes a Worker that writes with client.
func New(client *memwrite.Client, cfg Config) (*Worker, error) {
	switch {
	case cfg.Publisher == nil:
		return nil, errors.New("watermillworker: Publisher is nil")
	case cfg.Topic == "":
		return nil, errors.New("watermillworker: Topic is needed, for messages that shall come again")
	case cfg.Dead == "" || cfg.Dead == cfg.Topic:
		return nil, errors.New("watermillworker: Dead is needed, and as a topic of its own")
	case cfg.Turn < 0 || cfg.Drain < 0:
		return nil, errors.New("watermillworker: Turn or Drain is negative")
	}
	if cfg.Turn == 0 {
		cfg.Turn = time.Second
	}
	if cfg.Drain == 0 {
		cfg.Drain = 20 * time.Second
	}
	core, err := worker.New(client, cfg.Worker)
	if err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, core: core, log: cfg.Worker.Logger}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	return w, nil
}

// AddTo adds n handlers to the router, each with a subscription of its own:
// most of Watermill's subscribers hand out one message at a time. It has to be
// called before the router runs.
//
// A subscriber that can make queues makes those of Topic and Dead here. With one
// that cannot, somebody must have made them: RabbitMQ drops what is published
// to a queue that is not there, and says nothing.
func (w *Worker) AddTo(router *message.Router, name string, subscriber message.Subscriber, n int) error {
	if maker, ok := subscriber.(message.SubscribeInitializer); ok {
		for _, topic := range []string{w.cfg.Topic, w.cfg.Dead} {
			if err := maker.SubscribeInitialize(topic); err != nil {
				return fmt.Errorf("watermillworker: making the queue of %s: %w", topic, err)
			}
		}
	}
	for i := range max(n, 1) {
		router.AddConsumerHandler(name+"-"+strconv.Itoa(i+1), w.cfg.Topic, subscriber, w.Handle)
	}
	return nil
}

// Counts reads the worker's counters.
func (w *Worker) Counts() worker.Counts { return w.core.Counts() }

// Run runs the router until ctx ends. Then what waits is returned at once, and
// what is being written has Config.Drain to end.
func (w *Worker) Run(ctx context.Context, router *message.Router) error {
	ended := make(chan error, 1)
	go func() { ended <- router.Run(context.WithoutCancel(ctx)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select { // a router that is closed before it runs never ends
	case <-router.Running():
	case err := <-ended:
		return err
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Drain)
	defer cancel()
	_ = w.core.Close(end)
	if err := router.Close(); err != nil {
		return fmt.Errorf("watermillworker: %w", err)
	}
	return <-ended
}

// Handle is the handler: a message.NoPublishHandlerFunc. The payload is a
// record in the form that Config.Worker.Decode reads. It returns an error, a
// Nack, only when the worker closes or the broker cannot be written to.
func (w *Worker) Handle(msg *message.Message) error {
	return w.obey(msg, func(d worker.Delivery) worker.Outcome { return w.core.Handle(msg.Context(), d) })
}

// Middleware gives a handler that makes its own calls the worker's outcomes:
// the handler returns the client's error as it is. identity names the message's
// record in dead letters, and may be nil. What the handler publishes is
// published when its record is written, which may be more than once.
func (w *Worker) Middleware(identity func(*message.Message) string) message.HandlerMiddleware {
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (produced []*message.Message, err error) {
			name := ""
			if identity != nil {
				name = identity(msg)
			}
			err = w.obey(msg, func(d worker.Delivery) worker.Outcome {
				return w.core.Do(msg.Context(), d, name, "", func(ctx context.Context) error {
					msg.SetContext(ctx)
					var err error
					if produced, err = next(msg); err != nil {
						produced = nil // it is made again when the message comes again
					}
					return err
				})
			})
			return produced, err
		}
	}
}

func (w *Worker) obey(msg *message.Message, handle func(worker.Delivery) worker.Outcome) error {
	ctx := msg.Context()
	attempt, _ := strconv.Atoi(msg.Metadata.Get(AttemptKey))
	if early := w.early(msg); early > 0 {
		rest(ctx, min(early, w.cfg.Turn))
		if early > w.cfg.Turn && ctx.Err() == nil {
			return w.again(msg, attempt, msg.Metadata.Get(NotBeforeKey))
		}
	}
	out := handle(worker.Delivery{Data: msg.Payload, Source: "topic " + w.cfg.Topic + " message " + msg.UUID, Attempt: attempt + 1})
	switch out.Action {
	case memwrite.Ack:
		return nil
	case memwrite.RetryAfter:
		return w.again(msg, attempt+1, time.Now().Add(out.After).UTC().Format(time.RFC3339Nano))
	case memwrite.DeadLetter:
		return w.bury(msg, out)
	case memwrite.Hold: // the next delivery waits for the hold to end
		return w.again(msg, attempt, "")
	}
	if out.After > 0 {
		return w.again(msg, attempt, "")
	}
	// The worker is closing. A Nack before the subscriber is closed would come
	// back at once.
	<-ctx.Done()
	return errors.New("watermillworker: given back, because the worker is closing")
}

// early is how long a message has to wait before its next delivery.
func (w *Worker) early(msg *message.Message) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, msg.Metadata.Get(NotBeforeKey))
	if err != nil {
		return 0
	}
	// A clock that was set back must not keep a message for longer than any
	// delivery is put off.
	return min(time.Until(at), time.Hour)
}

// again puts a copy at the end of the topic. The message itself is acknowledged
// then.
func (w *Worker) again(msg *message.Message, attempt int, notBefore string) error {
	next := message.NewMessage(watermill.NewUUID(), msg.Payload)
	for k, v := range msg.Metadata {
		next.Metadata.Set(k, v)
	}
	next.Metadata.Set(AttemptKey, strconv.Itoa(attempt))
	delete(next.Metadata, NotBeforeKey)
	if notBefore != "" {
		next.Metadata.Set(NotBeforeKey, notBefore)
	}
	return w.publish(msg.Context(), w.cfg.Topic, next)
}

func (w *Worker) bury(msg *message.Message, out worker.Outcome) error {
	letter, err := json.Marshal(out.Dead)
	if err != nil {
		return err
	}
	dead := message.NewMessage(watermill.NewUUID(), letter)
	dead.Metadata.Set(IdentityKey, out.Identity)
	dead.Metadata.Set(ReasonKey, out.Reason)
	return w.publish(msg.Context(), w.cfg.Dead, dead)
}

// publish leaves the message where it is, as a Nack, when the broker does not
// take the copy; after a while, so that it does not come back at once.
func (w *Worker) publish(ctx context.Context, topic string, m *message.Message) error {
	err := w.cfg.Publisher.Publish(topic, m)
	if err != nil {
		w.log.Warn("watermillworker: a message could not be published", slog.String("topic", topic), slog.Any("error", err))
		rest(ctx, w.cfg.Turn)
		return fmt.Errorf("watermillworker: publishing to %s: %w", topic, err)
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
