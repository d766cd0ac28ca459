// Package natsworker runs a memwrite worker on a NATS JetStream consumer.
//
//	w, err := natsworker.New(ctx, js, client, natsworker.Config{Stream: "NOTES", Durable: "memwrite", Dead: "dead.notes"})
//	err = w.Run(ctx) // until ctx ends
//
// A message is acknowledged when its record is written, delivered again after a
// delay (NakWithDelay) when the service asks for patience, and published to the
// dead-letter subject and terminated (Term) when it can never pass. While a
// write takes long the server is told so (InProgress). While the worker holds
// it pulls one message now and then as a probe and nothing else.
package natsworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where messages come from and where dead ones go.
type Config struct {
	Stream  string // that the messages are in
	Durable string // the consumer's name; it is made when it is not there
	// Filter narrows a consumer that New makes to one subject; empty is all.
	Filter string
	// AckWait of a consumer that New makes: how long after a worker was killed
	// its messages go to another one; 30 s.
	AckWait time.Duration

	// Dead is the subject for dead letters. When no stream listens on it, New
	// makes one named DeadStream.
	Dead       string
	DeadStream string

	// Drain is how long writes on their way may take when Run ends; 20 s.
	Drain time.Duration

	Worker worker.Config
}

// Worker works off one consumer.
type Worker struct {
	cfg      Config
	core     *worker.Worker
	js       jetstream.JetStream
	consumer jetstream.Consumer
	extend   time.Duration
	log      *slog.Logger
	open     sync.WaitGroup
}

// New checks or makes the consumer and the stream of dead letters.
//
// A consumer that is there is used as it is. It must acknowledge explicitly and
// have no MaxDeliver: with one, JetStream stops delivering a message without a
// word, and a record would be lost to a long outage. How often a record is
// tried is the worker's to decide.
func New(ctx context.Context, js jetstream.JetStream, client *memwrite.Client, cfg Config) (*Worker, error) {
	switch {
	case cfg.Stream == "" || cfg.Durable == "":
		return nil, errors.New("natsworker: Stream and Durable are needed")
	case cfg.Dead == "":
		return nil, errors.New("natsworker: Dead is needed: without a subject for dead letters they would be lost")
	case cfg.AckWait < 0 || cfg.Drain < 0:
		return nil, errors.New("natsworker: AckWait or Drain is negative")
	}
	if cfg.AckWait == 0 {
		cfg.AckWait = 30 * time.Second
	}
	if cfg.Drain == 0 {
		cfg.Drain = 20 * time.Second
	}
	if cfg.DeadStream == "" {
		cfg.DeadStream = cfg.Stream + "-DEAD"
	}
	core, err := worker.New(client, cfg.Worker)
	if err != nil {
		return nil, err
	}
	w := &Worker{cfg: cfg, core: core, js: js, log: cfg.Worker.Logger}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if err := w.findConsumer(ctx); err != nil {
		return nil, err
	}
	return w, w.findDead(ctx)
}

func (w *Worker) findConsumer(ctx context.Context) error {
	c, err := w.js.Consumer(ctx, w.cfg.Stream, w.cfg.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = w.js.CreateConsumer(ctx, w.cfg.Stream, jetstream.ConsumerConfig{
			Durable: w.cfg.Durable, FilterSubject: w.cfg.Filter, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: w.cfg.AckWait, MaxDeliver: -1, MaxAckPending: -1,
		})
	}
	if err != nil {
		return fmt.Errorf("natsworker: consumer %s of stream %s: %w", w.cfg.Durable, w.cfg.Stream, err)
	}
	is := c.CachedInfo().Config
	switch {
	case is.AckPolicy != jetstream.AckExplicitPolicy:
		return fmt.Errorf("natsworker: consumer %s does not acknowledge explicitly; a record would count as written before it is", w.cfg.Durable)
	case is.MaxDeliver > 0:
		return fmt.Errorf("natsworker: consumer %s has MaxDeliver %d; JetStream would drop a record after so many deliveries. Set it to -1", w.cfg.Durable, is.MaxDeliver)
	}
	wait := is.AckWait
	for _, d := range is.BackOff { // they take AckWait's place
		wait = min(wait, d)
	}
	w.consumer, w.extend = c, max(wait/3, 10*time.Millisecond)
	return nil
}

func (w *Worker) findDead(ctx context.Context) error {
	name, err := w.js.StreamNameBySubject(ctx, w.cfg.Dead)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		name = w.cfg.DeadStream
		_, err = w.js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{w.cfg.Dead}})
	}
	switch {
	case err != nil:
		return fmt.Errorf("natsworker: a stream for dead letters on %s: %w", w.cfg.Dead, err)
	case name == w.cfg.Stream:
		return fmt.Errorf("natsworker: subject %s is part of stream %s; dead letters would come back as messages", w.cfg.Dead, name)
	}
	return nil
}

// Counts reads the worker's counters.
func (w *Worker) Counts() worker.Counts { return w.core.Counts() }

// defaultConcurrency is the one of worker.Config.
const defaultConcurrency = 8

// Run works until ctx ends, then drains and returns nil. The logger is told of
// its begin, and at the end of its counts. A Worker runs once.
func (w *Worker) Run(ctx context.Context) error {
	w.log.Info("natsworker takes messages", slog.String("stream", w.cfg.Stream), slog.String("consumer", w.cfg.Durable),
		slog.Int("concurrency", cmp.Or(w.cfg.Worker.Concurrency, defaultConcurrency)), slog.String("dead", w.cfg.Dead))
	err := w.pull(ctx)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Drain)
	defer cancel()
	_ = w.core.Close(end) // what was not finished was given back
	w.open.Wait()
	c := w.core.Counts()
	w.log.Info("natsworker has ended", slog.Int64("delivered", c.Delivered), slog.Int64("acked", c.Acked), slog.Int64("stored", c.Stored),
		slog.Int64("already", c.Already), slog.Int64("skipped", c.Skipped), slog.Int64("no_memory", c.NoMemory),
		slog.Int64("retried", c.Retried), slog.Int64("held", c.Held), slog.Int64("given_back", c.GivenBack), slog.Int64("dead", c.Dead))
	return err
}

// pullWait is how long one pull waits for messages.
const pullWait = 5 * time.Second

func (w *Worker) pull(ctx context.Context) error {
	for {
		n, err := w.core.Demand(ctx)
		if err != nil {
			return nil
		}
		within, cancel := context.WithTimeout(ctx, pullWait)
		batch, err := w.consumer.Fetch(n, jetstream.FetchContext(within))
		if err == nil {
			for msg := range batch.Messages() {
				w.open.Go(func() { w.handle(context.WithoutCancel(ctx), msg) })
			}
			err = batch.Error()
		}
		timedOut := within.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("natsworker: %w", err)
		case err != nil && !timedOut:
			w.log.Warn("natsworker: a pull failed", slog.Any("error", err))
			rest(ctx, time.Second)
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// settleWait bounds one acknowledgement.
const settleWait = 5 * time.Second

func (w *Worker) handle(ctx context.Context, msg jetstream.Msg) {
	d := worker.Delivery{
		Data: msg.Data(), Source: "stream " + w.cfg.Stream, ExtendEvery: w.extend,
		Extend: func(context.Context) error { return msg.InProgress() },
	}
	if meta, err := msg.Metadata(); err == nil {
		d.Attempt = int(min(meta.NumDelivered, 1<<30))
		d.Source += " message " + strconv.FormatUint(meta.Sequence.Stream, 10)
	}
	out := w.core.Handle(ctx, d)
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	var err error
	switch out.Action {
	case memwrite.Ack:
		err = msg.DoubleAck(ctx)
	case memwrite.RetryAfter:
		err = msg.NakWithDelay(out.After)
	case memwrite.DeadLetter:
		err = w.bury(ctx, msg, out)
	default: // JetStream counts it, and without MaxDeliver that means nothing
		if out.After > 0 {
			err = msg.NakWithDelay(out.After)
		} else {
			err = msg.Nak()
		}
	}
	if err != nil { // it is delivered again, and its identity makes that harmless
		w.log.Warn("natsworker: a message was not settled", slog.String("source", d.Source), slog.String("action", out.Action.String()), slog.Any("error", err))
	}
}

// bury keeps the dead letter first and takes the message off the queue then. A
// letter that comes twice within the stream's window is kept once.
func (w *Worker) bury(ctx context.Context, msg jetstream.Msg, out worker.Outcome) error {
	letter, err := json.Marshal(out.Dead)
	if err == nil {
		_, err = w.js.PublishMsg(ctx, &nats.Msg{Subject: w.cfg.Dead, Data: letter, Header: nats.Header{
			"Memwrite-Identity": {header(out.Identity)}, "Memwrite-Reason": {header(out.Reason)},
		}}, jetstream.WithMsgID(out.Dead.ID))
	}
	if err != nil {
		return errors.Join(err, msg.NakWithDelay(settleWait))
	}
	return msg.Term() // servers before 2.10.4 ignore a Term with a reason; the letter has it
}

// header is a value that can stand in a header.
func header(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}
