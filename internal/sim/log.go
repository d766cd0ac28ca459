package sim

import (
	"fmt"
	"time"
)

// entry is one line of the operation log.
type entry struct {
	Step  int
	At    time.Duration // since the beginning
	Owner string
	What  string
	Name  string
	More  string
	N     int64
}

func (e entry) String() string {
	s := fmt.Sprintf("%6d %14v %-10s %-9s %s", e.Step, e.At.Round(time.Microsecond), e.Owner, e.What, e.Name)
	if e.More != "" {
		s += " " + e.More
	}
	if e.N != 0 {
		s += fmt.Sprintf(" (%d)", e.N)
	}
	return s
}

// oplog is what happened: always as a hash, and in words when somebody is
// going to read them.
type oplog struct {
	hash  uint64
	keep  bool
	lines []entry
}

const (
	fnvStart = 14695981039346656037
	fnvPrime = 1099511628211
)

func (l *oplog) mix(n uint64) {
	for range 8 {
		l.hash = (l.hash ^ n&255) * fnvPrime
		n >>= 8
	}
}

func (l *oplog) mixText(s string) {
	for i := range len(s) {
		l.hash = (l.hash ^ uint64(s[i])) * fnvPrime
	}
	l.hash = (l.hash ^ 255) * fnvPrime
}

// note adds a line to the operation log.
func (w *world) note(what, name, more string, n int64) {
	l := &w.log
	l.mix(uint64(w.sched.now.UnixNano()))
	l.mixText(what)
	l.mixText(name)
	l.mixText(more)
	l.mix(uint64(n))
	if !l.keep {
		return
	}
	owner := ""
	if w.sched.running != nil {
		owner = fmt.Sprintf("%s/%d", w.sched.running.owner, w.sched.running.number)
	}
	l.lines = append(l.lines, entry{w.sched.steps, w.sched.now.Sub(w.began), owner, what, name, more, n})
}
