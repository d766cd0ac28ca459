package sched

import "context"

// Lock is a mutex for what is held across a wait of the scheduler: whoever
// finds it taken waits through the scheduler too, so that one runnable at a
// time never comes to stand on a lock. Where nothing waits inside,
// [sync.Mutex] does.
type Lock struct {
	sched Scheduler
	token chan struct{} // holds one value while the lock is free
}

// NewLock makes a free lock.
func NewLock(s Scheduler) Lock {
	l := Lock{sched: s, token: make(chan struct{}, 1)}
	l.token <- struct{}{}
	return l
}

// Lock waits until the lock is free and takes it. No context ends the wait.
func (l Lock) Lock() {
	select {
	case <-l.token:
	default:
		_ = l.sched.Wait(context.Background(), Forever, l.token)
	}
}

// Unlock frees the lock. Freeing a free lock is a fault and panics.
func (l Lock) Unlock() {
	select {
	case l.token <- struct{}{}:
	default:
		panic("sched: unlock of a free lock")
	}
}
