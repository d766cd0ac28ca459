package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go"
)

// maxDeliveries is when a message is given up although it may yet pass.
const maxDeliveries = 12

// worker writes the notes of a queue. Everything it knows about retrying is in
// two places: the client sends one call again by itself, and VerdictOf says
// what to do with the message when the client has given up.
type worker struct {
	client   *memwrite.Client
	queue    *queue
	tenant   string
	patience time.Duration // how long one delivery waits for an inferred note

	mu   sync.Mutex
	told map[int]*told // by line
}

// told is what the worker was told about one note: the client's belief.
type told struct {
	outcome   string
	memory    string
	tries     int
	redrives  int
	incidents []string
}

func (w *worker) run(ctx context.Context, workers int) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for d := range w.queue.ready {
				w.deliver(ctx, d)
			}
		})
	}
	all.Wait()
}

// deliver does one delivery: write, ask for the verdict, obey it.
func (w *worker) deliver(ctx context.Context, d delivery) {
	if d.count > 1 {
		w.note(d.note, "delivered again")
	}
	result, err := w.write(ctx, d.note)
	verdict := memwrite.VerdictOf(err)
	redrives := w.believe(d, result, err)

	switch action := verdict.Action; {
	case action == memwrite.Ack:
		w.queue.ack(d)
	case action == memwrite.RetryAfter && d.count < maxDeliveries:
		w.note(d.note, kindOf(err)+", sent again later")
		w.queue.later(ctx, d, max(verdict.After, 100*time.Millisecond))
	case action == memwrite.RedriveEvent && redrives < memwrite.MaxRedrives:
		w.redrive(ctx, d, err)
	case action == memwrite.GiveBack:
		w.queue.drop(d)
	case errors.Is(err, memwrite.ErrRefReused):
		w.note(d.note, "the reference belongs to another text: dead letter")
		w.settle(d.note, outcomeAlready)
		w.queue.drop(d)
	default:
		w.note(d.note, fmt.Sprintf("%s: %s", kindOf(err), action))
		w.settle(d.note, outcomeFailed)
		w.queue.drop(d)
	}
}

// believe keeps what the client was told, and gives how often the note was
// redriven. The first answer counts: a later one only says that it was there.
func (w *worker) believe(d delivery, got written, err error) (redrives int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.about(d.note)
	t.tries += got.tries
	if err == nil && t.outcome == "" {
		t.outcome, t.memory = got.outcome, got.memory
		if got.outcome == outcomeAlready && (d.count > 1 || got.tries > 1) {
			t.outcome = outcomeStored // by an earlier try whose answer was lost
		}
	}
	return t.redrives
}

// redrive asks for a new run of a failed event and has the message delivered
// again. Sending the key again would answer FAILED for ever.
func (w *worker) redrive(ctx context.Context, d delivery, err error) {
	var e *memwrite.Error
	if !errors.As(err, &e) || e.Receipt == nil {
		w.settle(d.note, outcomeFailed)
		w.queue.drop(d)
		return
	}
	w.note(d.note, "failed, run again")
	w.mu.Lock()
	w.about(d.note).redrives++
	w.mu.Unlock()
	if _, err := w.client.Redrive(ctx, e.Receipt.EventID); err != nil {
		w.note(d.note, "no new run: "+kindOf(err))
	}
	w.queue.later(ctx, d, 0)
}

type written struct {
	outcome string
	memory  string
	tries   int
}

// write sends one note the way its kind asks for.
func (w *worker) write(ctx context.Context, n Note) (written, error) {
	switch {
	case n.Turn != nil:
		return w.turn(ctx, *n.Turn)
	case n.Infer != nil:
		return w.inferred(ctx, *n.Infer)
	}
	req := *n.Add
	req.Source = cmp.Or(req.Source, "support-desk")
	got, err := w.client.Add(ctx, req)
	if err != nil {
		return written{tries: triesOf(err)}, err
	}
	out := written{tries: got.Tries}
	switch got.Outcome {
	case memwrite.Stored:
		out.outcome, out.memory = outcomeStored, got.Memory.Text
	case memwrite.AlreadyIngested:
		out.outcome = outcomeAlready
	default:
		out.outcome = outcomeSkipped
	}
	return out, nil
}

func (w *worker) turn(ctx context.Context, req memwrite.TurnRequest) (written, error) {
	req.TenantID, req.Source = cmp.Or(req.TenantID, w.tenant), cmp.Or(req.Source, "support-desk")
	// The client would skip an assistant's turn by itself. Here the server is to
	// say so.
	req.SendNonUser = true
	got, err := w.client.AddTurn(ctx, req)
	if err != nil {
		return written{tries: triesOf(err)}, err
	}
	out := written{outcome: outcomeStored, tries: got.Tries}
	if got.ProcessingStatus == memwrite.SkippedNonUser || got.ProcessingStatus == memwrite.SkippedLowValue {
		out.outcome = outcomeSkipped
	}
	return out, nil
}

func (w *worker) inferred(ctx context.Context, req memwrite.InferRequest) (written, error) {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	event, err := w.client.AddAndWait(ctx, req)
	if err != nil {
		return written{tries: triesOf(err)}, err
	}
	if len(event.Results) == 0 {
		return written{outcome: outcomeNoMemory, tries: 1}, nil
	}
	return written{outcome: outcomeStored, memory: event.Results[0].Memory, tries: 1}, nil
}

func triesOf(err error) int {
	var e *memwrite.Error
	if errors.As(err, &e) {
		return e.Tries
	}
	return 0
}

func kindOf(err error) string {
	var e *memwrite.Error
	if errors.As(err, &e) {
		return e.Kind.String()
	}
	return "error"
}

// about is the entry of a note; the caller holds the lock.
func (w *worker) about(n Note) *told {
	t := w.told[n.Line]
	if t == nil {
		t = &told{}
		w.told[n.Line] = t
	}
	return t
}

func (w *worker) note(n Note, incident string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.about(n)
	t.incidents = append(t.incidents, incident)
}

func (w *worker) settle(n Note, outcome string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.about(n).outcome = outcome
}
