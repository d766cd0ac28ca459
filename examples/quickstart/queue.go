package main

import (
	"context"
	"sync"
	"time"
)

// delivery is one time a message is handed to a worker.
type delivery struct {
	note  Note
	count int // how often this message was handed out, this time included
}

// queue is an at-least-once message queue: a message comes back until it is
// acknowledged, and now and then an acknowledgement gets lost.
type queue struct {
	ready chan delivery
	open  sync.WaitGroup

	mu     sync.Mutex
	counts map[int]int // by line
	lose   func(Note) bool
	lost   map[int]bool
}

// newQueue holds one message for each note. lose says whose first
// acknowledgement never arrives, as when a worker dies right after the write.
func newQueue(notes []Note, lose func(Note) bool) *queue {
	q := &queue{
		ready:  make(chan delivery, len(notes)),
		counts: make(map[int]int),
		lose:   lose,
		lost:   make(map[int]bool),
	}
	q.open.Add(len(notes))
	for _, note := range notes {
		q.hand(note)
	}
	go func() {
		q.open.Wait()
		close(q.ready)
	}()
	return q
}

// ack ends a message, unless this is the acknowledgement that gets lost: then
// the message is delivered again, although its work is done.
func (q *queue) ack(d delivery) {
	q.mu.Lock()
	lost := q.lose(d.note) && !q.lost[d.note.Line]
	q.lost[d.note.Line] = true
	q.mu.Unlock()
	if lost {
		q.hand(d.note)
		return
	}
	q.open.Done()
}

// later hands the message out again after a while.
func (q *queue) later(ctx context.Context, d delivery, after time.Duration) {
	go func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
			q.hand(d.note)
		case <-ctx.Done():
			q.open.Done()
		}
	}()
}

// drop takes the message out for good: to the dead letters, or because a
// person has to act first.
func (q *queue) drop(delivery) { q.open.Done() }

// hand never blocks: a message is in the channel at most once.
func (q *queue) hand(note Note) {
	q.mu.Lock()
	q.counts[note.Line]++
	count := q.counts[note.Line]
	q.mu.Unlock()
	q.ready <- delivery{note: note, count: count}
}

func (q *queue) deliveries(line int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts[line]
}
