package worker

import (
	"context"
	"sync"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// lanes lets the deliveries of one key through one at a time, in the order in
// which they came.
type lanes struct {
	sched sched.Scheduler

	mu   sync.Mutex
	keys map[string][]chan struct{} // those who wait behind the one inside
}

// enter returns when every earlier delivery of the key has left.
func (l *lanes) enter(ctx context.Context, key string) error {
	l.mu.Lock()
	line, busy := l.keys[key]
	if !busy {
		l.keys[key] = nil
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	l.keys[key] = append(line, turn)
	l.mu.Unlock()
	err := l.sched.Wait(ctx, sched.Forever, turn)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, t := range l.keys[key] {
		if t == turn {
			l.keys[key] = append(l.keys[key][:i:i], l.keys[key][i+1:]...)
			return err
		}
	}
	l.pass(key) // the turn came at the same moment; the next one shall have it
	return err
}

func (l *lanes) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pass(key)
}

func (l *lanes) pass(key string) {
	line := l.keys[key]
	if len(line) == 0 {
		delete(l.keys, key)
		return
	}
	l.keys[key] = line[1:]
	line[0] <- struct{}{}
}

// slots bounds how many may be inside at a time, first come first served.
type slots struct {
	sched sched.Scheduler
	total int

	mu    sync.Mutex
	taken int
	line  []chan struct{}
}

func (s *slots) take(ctx context.Context) error {
	s.mu.Lock()
	if s.taken < s.total {
		s.taken++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{}, 1)
	s.line = append(s.line, turn)
	s.mu.Unlock()
	err := s.sched.Wait(ctx, sched.Forever, turn)
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.line {
		if t == turn {
			s.line = append(s.line[:i:i], s.line[i+1:]...)
			return err
		}
	}
	s.release() // it was given at the same moment
	return err
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

func (s *slots) release() {
	if len(s.line) == 0 {
		s.taken--
		return
	}
	turn := s.line[0]
	s.line = s.line[1:]
	turn <- struct{}{}
}

func (s *slots) inside() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}
