package conformance_test

import (
	"strings"
	"time"
)

// lease is how long an attempt of the second server may take.
const lease = 200 * time.Millisecond

// attemptsAllowed is how often a task is tried.
const attemptsAllowed = 3

// work is one accepted write and what becomes of it.
type work struct {
	id, workspace, wire, user string
	kind                      string // add, turn, infer or verbatim
	name                      string // key, client_ref or text of a turn: what faults are armed for
	identity                  string // "" when it is freed
	fingerprint               string
	inputs                    []string
	content                   string

	state     string
	attempts  int
	run       int
	turn      int // fences attempts: only the latest may write
	plan      []string
	planned   bool
	committed bool
	stored    []*memory
	err       string

	reserved, settled, released int
	created, updated            time.Time
	started, completed          time.Time
	moved                       chan struct{} // closed at each change
}

func price(kind string) int {
	if kind == "infer" {
		return 2
	}
	return 1
}

// change is called with mu held after every change of a task.
func (t *work) change() {
	t.updated = time.Now()
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *work) ended() bool { return t.state == "SUCCEEDED" || t.state == "FAILED" }

// accept makes a task; mu is held.
func (s *second) accept(t *work) {
	t.id = "task_" + digits(s.id())
	t.state, t.run, t.moved = "PENDING", 1, make(chan struct{})
	t.created, t.updated = time.Now(), time.Now()
	t.reserved = price(t.kind)
	if t.kind == "verbatim" && s.is("billing/verbatim") {
		t.reserved = 2
	}
	s.tasks = append(s.tasks, t)
	if t.identity != "" {
		s.named[t.identity] = t
	}
	if s.strikeLocked(t.name, "lose_wakeup") != nil {
		if !s.is("crash/lost-wakeup") {
			time.AfterFunc(lease, func() { s.attempt(t) }) // repair
		}
		return
	}
	if t.kind != "verbatim" {
		go s.attempt(t)
	}
}

// attempt runs a task once, unless it is done or another attempt has it.
func (s *second) attempt(t *work) {
	s.mu.Lock()
	if t.state != "PENDING" && t.state != "RETRYING" && t.state != "RUNNING" {
		s.mu.Unlock()
		return
	}
	if t.attempts >= attemptsAllowed && !s.is("crash/poison") {
		s.fail(t, "every runner was lost")
		s.mu.Unlock()
		return
	}
	t.attempts++
	t.turn++
	turn := t.turn
	t.state = "RUNNING"
	if t.started.IsZero() {
		t.started = time.Now()
	}
	t.change()
	s.mu.Unlock()
	time.AfterFunc(lease, func() { // whoever comes when the lease is over
		s.mu.Lock()
		lost := t.turn == turn && t.state == "RUNNING"
		s.mu.Unlock()
		if lost {
			s.attempt(t)
		}
	})
	s.steps(t, turn)
}

// steps are those of one attempt. A killed one leaves without a word.
func (s *second) steps(t *work, turn int) {
	var facts []string
	stale := func() bool { return s.is("crash/zombie") && t.turn != turn } // writes although it has lost the task
	for _, step := range []struct {
		point string
		do    func() bool
	}{
		{"before_inference", func() bool {
			if t.planned && !stale() {
				return true
			}
			var ok bool
			facts, ok = s.inferred(t)
			return ok
		}},
		{"after_inference", func() bool {
			if !t.planned || stale() {
				t.plan, t.planned = facts, true
			}
			return true
		}},
		{"after_plan", func() bool {
			if !t.committed || stale() {
				s.store(t)
			}
			return true
		}},
		{"after_commit", func() bool { return true }},
		{"before_finish", func() bool {
			t.state, t.err, t.settled = "SUCCEEDED", "", t.settled+price(t.kind)
			if t.kind == "verbatim" {
				t.settled = t.reserved
			}
			t.completed = time.Now()
			t.change()
			return false
		}},
	} {
		if !s.survives(t, step.point) {
			return
		}
		s.mu.Lock()
		if t.state == "STOPPED" || (t.turn != turn && !stale()) {
			s.mu.Unlock()
			return
		}
		on := step.do()
		s.mu.Unlock()
		if !on {
			return
		}
	}
}

// survives passes a point where the runner may be killed or frozen.
func (s *second) survives(t *work, point string) bool {
	if s.strikeAt(t.name, "kill_runner", point) != nil {
		if point == "after_commit" && ((s.is("add/crash") && t.kind == "add") || (s.is("crash/points") && t.kind == "infer")) {
			s.mu.Lock()
			t.committed = false // forgets that it has written
			s.mu.Unlock()
		}
		return false
	}
	if m := s.strikeAt(t.name, "freeze_runner", point); m != nil {
		<-m.gate
	}
	return true
}

// inferred reads the input; false is a failure that was dealt with. mu is held.
func (s *second) inferred(t *work) ([]string, bool) {
	if s.strikeLocked(t.name, "provider_timeout") != nil {
		if s.is("failed/transient") || t.attempts >= attemptsAllowed {
			s.fail(t, "the model did not answer")
			return nil, false
		}
		t.state, t.err = "RETRYING", "the model did not answer"
		t.change()
		time.AfterFunc(5*time.Millisecond, func() { s.attempt(t) })
		return nil, false
	}
	if s.strikeLocked(t.name, "provider_invalid") != nil {
		if s.is("failed/no-memory") && t.kind == "infer" {
			t.plan = t.inputs
			s.store(t)
		}
		s.fail(t, "the model's answer is no list of facts")
		return nil, false
	}
	var facts []string
	for _, in := range t.inputs {
		if !filler(in) {
			facts = append(facts, strings.TrimSuffix(strings.TrimSpace(in), "."))
		}
	}
	if len(facts) == 0 && s.is("event/no-memory") && t.kind == "infer" {
		s.fail(t, "nothing to store")
		return nil, false
	}
	return facts, true
}

func filler(text string) bool {
	return strings.Trim(strings.ToLower(text), " .!") == "ok thanks"
}

// store writes the plan's records; mu is held.
func (s *second) store(t *work) {
	t.committed = true
	for _, text := range t.plan {
		n := s.id()
		m := &memory{id: "mem_" + digits(n), number: n, workspace: t.workspace, wire: t.wire, user: t.user, text: text}
		s.memories = append(s.memories, m)
		t.stored = append(t.stored, m)
	}
}

// fail ends a task FAILED; mu is held.
func (s *second) fail(t *work, why string) {
	t.state, t.err, t.completed = "FAILED", why, time.Now()
	if !s.is("billing/failed") {
		t.released += price(t.kind)
	}
	if (t.kind == "add" && !s.is("add/failed")) || (t.kind == "turn" && !s.is("turn/failed")) {
		delete(s.named, t.identity)
	}
	t.change()
}

// redrive runs a FAILED task again; mu is held.
func (s *second) redrive(t *work) {
	for _, m := range t.stored { // of the promise that FAILED leaves nothing
		m.gone = true
	}
	t.stored, t.plan, t.planned, t.committed = nil, nil, false, false
	t.run++
	t.attempts, t.err, t.reserved = 0, "", t.reserved+price(t.kind)
	t.started, t.completed = time.Time{}, time.Time{}
	t.state = "PENDING"
	t.change()
	go s.attempt(t)
}

// await waits until a task has ended.
func (s *second) await(t *work, most time.Duration) {
	end := time.After(most)
	for {
		s.mu.Lock()
		done, moved := t.ended(), t.moved
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-end:
			return
		}
	}
}
