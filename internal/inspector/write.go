package inspector

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// moment is one thing on the timeline of a write.
type moment struct {
	At      time.Time
	Kind    string
	Label   string
	Proof   string // what it proves
	Attempt int
	Bad     bool
}

type story struct {
	Task    protocol.Task
	Event   protocol.Event
	Moments []moment
	Picture picture
	Held    time.Duration // how long the lease is still held
	Partial bool          // the beginning was told to another process, or is forgotten
}

// proofs says what each step proves to who reads the timeline.
var proofs = map[protocol.StepKind]string{
	protocol.StepAccepted:   "command, identity and reservation are stored together; from here on it is not lost",
	protocol.StepReplayed:   "the same command came again: same event, nothing charged, nothing inferred",
	protocol.StepConflict:   "another command came under this key: refused, nothing changed",
	protocol.StepClaimed:    "one runner holds the lease; the attempt is counted before it begins",
	protocol.StepReclaimed:  "the runner before was lost; its lease ran out and exactly one took over",
	protocol.StepPlanned:    "the plan is frozen: the model is not asked again",
	protocol.StepCommitted:  "the records are stored, once; only success is possible now",
	protocol.StepProjected:  "search finds the records; neither records nor charge changed",
	protocol.StepRetrying:   "the attempt failed and another is allowed; the reservation stays",
	protocol.StepSucceeded:  "final: the reservation is settled and the input is gone, in one transaction",
	protocol.StepFailed:     "final until it is redriven: the reservation is released, in the same transaction",
	protocol.StepFenced:     "a runner without the lease wanted to write: refused, nothing changed",
	protocol.StepRedriven:   "begins again by request, and reserves again if it had failed",
	protocol.StepUnfinished: "the runner is gone without a word; repair finds the task when its lease ends",
}

func (i *Inspector) write(w http.ResponseWriter, r *http.Request) {
	t, err := i.Store().Task(r.Context(), r.PathValue("id"))
	if errors.Is(err, protocol.ErrNotFound) || (err == nil && t.Workspace != i.workspace(r)) {
		http.Error(w, "there is no such write in this workspace", http.StatusNotFound)
		return
	}
	if err != nil {
		i.broken(w)
		return
	}
	s := story{Task: t, Event: protocol.EventOf(t), Moments: i.moments(t)}
	if t.State == protocol.Running {
		s.Held = t.Lease.Expires.Sub(i.Now())
	}
	s.Partial = !slices.ContainsFunc(s.Moments, func(m moment) bool { return m.Kind == string(protocol.StepAccepted) })
	s.Picture = draw(s.Moments)
	// The texts of records are shown where records are listed, while they live.
	i.show(w, r, "write", "Write "+short(t.ID), s)
}

// moments is the requests and the steps of a task, in order.
func (i *Inspector) moments(t protocol.Task) []moment {
	var out []moment
	if i.Requests != nil && !t.Identity.Hash.IsZero() {
		for _, r := range i.Requests() {
			if r.Hash == t.Identity.Hash {
				out = append(out, ofRequest(r))
			}
		}
	}
	for _, s := range i.Watch.Steps(t.ID) {
		m := moment{At: s.At, Kind: string(s.Kind), Label: string(s.Kind), Proof: proofs[s.Kind], Attempt: s.Attempt}
		switch s.Kind {
		case protocol.StepClaimed, protocol.StepReclaimed:
			m.Label = fmt.Sprintf("%s by %s, attempt %d, due for %s", s.Kind, short(s.Runner), s.Attempt, duration(s.Waited))
		case protocol.StepRetrying, protocol.StepFailed:
			m.Label = fmt.Sprintf("%s (%s)", s.Kind, s.Class)
			m.Bad = true
		case protocol.StepFenced, protocol.StepUnfinished, protocol.StepConflict:
			m.Bad = true
		}
		if s.Kind == protocol.StepReclaimed {
			m.Bad = true
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b moment) int { return a.At.Compare(b.At) })
	return out
}

func ofRequest(r Request) moment {
	m := moment{At: r.At, Kind: "request", Label: fmt.Sprintf("request %d: %s %s", r.Seq, r.Method, r.Path), Proof: "the caller asked"}
	switch {
	case r.Dropped:
		m.Label += fmt.Sprintf(", the answer was lost (%s)", r.Fault)
		m.Proof = "the caller cannot know; only the same identity may be sent again"
		m.Bad = true
	case r.Fault != "":
		m.Label += fmt.Sprintf(", answered %d (%s)", r.Status, r.Fault)
		m.Bad = true
	case r.Status != 0:
		m.Label += fmt.Sprintf(", answered %d", r.Status)
	}
	return m
}
