package sched

import (
	"context"
	"sync/atomic"
)

// Lock is a mutex for what is held across a wait of the scheduler: whoever
// finds it taken waits through the scheduler too, so that one runnable at a
// time never comes to stand on a lock. Where nothing waits inside,
// [sync.Mutex] does.
type Lock struct {
	sched Scheduler
	at    atomic.Int32  // who holds it and who waits for it, counted
	next  chan struct{} // hands it on to one who waits
}

// NewLock makes a free lock.
func NewLock(s Scheduler) *Lock { return &Lock{sched: s, next: make(chan struct{}, 1)} }

// Lock waits until the lock is free and takes it. No context ends the wait.
func (l *Lock) Lock() {
	if l.at.Add(1) > 1 {
		_ = l.sched.Wait(context.Background(), Forever, l.next)
	}
}

// Unlock frees the lock. Freeing a free lock is a fault and panics.
func (l *Lock) Unlock() {
	switch left := l.at.Add(-1); {
	case left < 0:
		panic("sched: unlock of a free lock")
	case left > 0:
		l.next <- struct{}{}
	}
}
