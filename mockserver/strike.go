package mockserver

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Strike is one moment in which a fault struck. Faults of connections strike
// requests; those behind the answer strike tasks.
type Strike struct {
	At      time.Time `json:"at"` // on the server's clock
	Fault   Kind      `json:"fault"`
	Point   Point     `json:"point,omitempty"`   // of runner faults
	Key     string    `json:"key,omitempty"`     // the identity it struck, where that is known
	Request int       `json:"request,omitempty"` // the Seq of the request; 0 for a task
	TaskID  string    `json:"task_id,omitempty"`
}

func (s Strike) line() string {
	out := string(s.Fault)
	if s.Point != "" {
		out += " at " + string(s.Point)
	}
	switch {
	case s.TaskID != "":
		out += " struck " + s.TaskID
	case s.Request != 0:
		out += fmt.Sprintf(" struck request #%d", s.Request)
	default:
		out += " struck"
	}
	if s.Key != "" {
		out += " [" + s.Key + "]"
	}
	return out
}

// maxStrikes bounds what is kept; the oldest go first.
const maxStrikes = 10_000

func (f *faults) note(s Strike) {
	if len(f.log) >= maxStrikes {
		f.log = slices.Delete(f.log, 0, maxStrikes/10)
	}
	f.log = append(f.log, s)
}

func (f *faults) strikes() []Strike {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

// idle is what is armed and has never struck.
func (f *faults) idle() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Fault
	for _, a := range f.armed {
		if !a.off && a.fired == 0 {
			out = append(out, a.fault)
		}
	}
	return out
}

// Strikes is every time a fault struck, oldest first.
func (s *Server) Strikes() []Strike { return s.faults.strikes() }

// Unfired is every fault that is armed and has never struck: its key or route
// matched nothing, or its moment did not come. Run logs them at the end of a
// test.
func (s *Server) Unfired() []Fault { return s.faults.idle() }

// FaultsFired fails the test if a fault that is still armed has never struck:
// the test then showed nothing about it.
func (s *Server) FaultsFired(t TB) {
	t.Helper()
	for _, f := range s.Unfired() {
		t.Errorf("%s never struck\n%s", f, s.near(Match{Route: f.Route, Key: f.Key}))
	}
}

// String says what the fault is and what it is narrowed to.
func (f Fault) String() string {
	parts := []string{string(f.Kind)}
	add := func(name, v string) {
		if v != "" {
			parts = append(parts, fmt.Sprintf("%s %q", name, v))
		}
	}
	if f.Kind.atPoint() {
		parts = append(parts, "at "+string(f.Point))
	}
	add("key", f.Key)
	add("route", f.Route)
	if f.Skip > 0 {
		parts = append(parts, fmt.Sprintf("after %d", f.Skip))
	}
	return "fault " + strings.Join(parts, ", ")
}

// onConnection says that the fault strikes a request.
func (k Kind) onConnection() bool {
	return slices.Contains([]Kind{DropResponse, Truncate, Stall, Reset, Status, IdempotencyIncomplete, ReservationInProgress}, k)
}

// atPoint says that the fault strikes a runner at its Point.
func (k Kind) atPoint() bool { return k == KillRunner || k == FreezeRunner || k == ExpireLease }

// check refuses a fault that would wait for ever, or strike more than it says:
// a mistake in a test must not look like a server that nothing goes wrong on.
func (f Fault) check() error {
	bad := func(why string) error { return fmt.Errorf("%w: %s", errFault, why) }
	switch {
	case !f.Kind.known():
		return bad(fmt.Sprintf("there is no kind %q", f.Kind))
	case f.Point != "" && !f.Kind.atPoint():
		return bad(string(f.Kind) + " has no Point; it is of runner faults")
	case f.Point != "" && !slices.Contains([]Point{BeforeInference, AfterInference, AfterPlan, AfterCommit, BeforeFinish}, f.Point):
		return bad(fmt.Sprintf("there is no point %q", f.Point))
	case f.Route != "" && !f.Kind.onConnection():
		return bad(string(f.Kind) + " strikes a task, which has no Route; narrow it by Key")
	case f.Route != "" && !strings.Contains(f.Route, " /"):
		return bad(`a Route is "METHOD /path"`)
	case f.Times < -1, f.Skip < 0, f.Delay < 0, f.Bytes < 0:
		return bad("Times is -1 or more, and Skip, Delay and Bytes are not negative")
	case !(f.Chance >= 0 && f.Chance <= 1):
		return bad("Chance is 0 to 1")
	case f.Code != 0 && (f.Code < 200 || f.Code > 599):
		return bad("Code is 200 to 599")
	case f.Kind != Status && (f.Code != 0 || f.Body != "" || f.ErrorCode != ""):
		return bad("Code, ErrorCode and Body are of the kind status")
	}
	return nil
}
