package sim

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string // I1 to I13 of the protocol, E1 to E6 of what callers are told
	Text      string
	Step      int
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.Text }

// audit keeps its own books of what is stored and judges every write before it
// is made. It shares no code with the checks of package protocol, so that a
// fault in those is seen as well.
//
//	E1 what a caller was told is stored is stored
//	E2 what one caller wants once is stored at most once
//	E3 it is charged once, and only if it is stored
//	E4 a refused write leaves nothing behind
//	E5 a client waits between 0 and what its policy allows, and never spins
//	E6 every call and every task comes to an end once nothing goes wrong any more
type audit struct {
	world      *world
	tasks      map[string]*shadow
	order      []string
	identities map[protocol.Hash]string
	accounts   map[protocol.Account]protocol.Balance
	grants     map[string]bool
	open       map[string]protocol.Entry
	ended      map[string]bool
	found      *Violation
}

// shadow is what is known of one task.
type shadow struct {
	row      protocol.Task
	command  protocol.Command
	running  int // transitions to RUNNING in this run
	records  int
	charged  int64 // settled
	planned  protocol.Hash
	deletion bool
}

func newAudit(w *world) *audit {
	return &audit{world: w, tasks: map[string]*shadow{}, identities: map[protocol.Hash]string{},
		accounts: map[protocol.Account]protocol.Balance{}, grants: map[string]bool{}, open: map[string]protocol.Entry{}, ended: map[string]bool{}}
}

// fail keeps the first violation; the world stops at it.
func (a *audit) fail(invariant, format string, args ...any) {
	if a.found == nil {
		a.found = &Violation{invariant, fmt.Sprintf(format, args...), a.world.sched.steps}
		a.world.note("violation", invariant, "", 0)
	}
}

// accepting judges a new command before it is written.
func (a *audit) accepting(ac protocol.Acceptance) {
	h := ac.Task.Identity.Hash
	if h.IsZero() && ac.Task.Kind != protocol.Delete && ac.Task.Command != nil && (ac.Task.Command.Key != "" || ac.Task.Command.ClientRef != "") {
		a.fail("I1", "a command with a name has no identity")
	}
}

// accepted takes what the store answered to a new command.
func (a *audit) accepted(ac protocol.Acceptance, t protocol.Task, twin bool, err error) {
	h := ac.Task.Identity.Hash
	holder, held := a.identities[h]
	if held {
		// A turn is recognised for thirty days, everything else for ever.
		if row := &a.tasks[holder].row; row.Kind == protocol.Turn && !ac.At.Before(row.CreatedAt.Add(30*24*time.Hour)) {
			held = false
		}
	}
	if err != nil {
		if errors.Is(err, protocol.ErrInvariant) {
			a.fail("I0", "an acceptance was stopped: %v", err)
		}
		now, lookup := a.world.store.TaskByIdentity(a.world.ctx, h)
		if _, was := a.identities[h]; !was && !h.IsZero() && lookup == nil {
			a.fail("E4", "a refused command left task %s behind", now.ID)
		}
		if _, lookup := a.world.store.Task(a.world.ctx, ac.Task.ID); lookup == nil {
			a.fail("E4", "a refused command left task %s behind", ac.Task.ID)
		}
		return
	}
	if twin {
		if t.Workspace != ac.Task.Workspace {
			a.fail("I2", "a command of %s was answered with task %s of %s", ac.Task.Workspace, t.ID, t.Workspace)
		}
		if !held || holder != t.ID {
			a.fail("I2", "a command was answered with task %s, its name belongs to %q", t.ID, holder)
		}
		return
	}
	if held && !h.IsZero() {
		a.fail("I1", "tasks %s and %s are one command", holder, t.ID)
	}
	if a.tasks[t.ID] != nil {
		a.fail("I1", "task %s is made twice", t.ID)
	}
	s := &shadow{row: t, deletion: t.Kind == protocol.Delete}
	if c := ac.Task.Command; c != nil {
		s.command = *c
	} else { // a verbatim write has lost it already; its records say it
		s.command = protocol.Command{Kind: t.Kind, Scope: t.Scope}
		if len(ac.Records) > 0 {
			s.command.Text = ac.Records[0].Text
		}
	}
	a.tasks[t.ID] = s
	a.order = append(a.order, t.ID)
	if !h.IsZero() {
		a.identities[h] = t.ID
	}
	for _, tr := range ac.Transitions {
		if tr.To == protocol.Running {
			s.running++
		}
	}
	s.records = len(ac.Records)
	a.post(ac.Entries, s)
	a.rests(&t, "accepted")
	if !t.State.Terminal() && !s.deletion {
		if _, ok := a.open[t.Reservation]; !ok {
			a.fail("I7", "task %s was accepted without a reservation", t.ID)
		}
	}
	if s.deletion && t.Amount != 0 {
		a.fail("I7", "deletion %s costs %d", t.ID, t.Amount)
	}
}

// proposed judges a step of a task against the row it is about to replace.
func (a *audit) proposed(old *protocol.Task, ws *protocol.WriteSet, now time.Time) {
	t := &ws.Task
	s := a.tasks[t.ID]
	if s == nil {
		a.fail("I1", "a step of task %s, which nobody accepted", t.ID)
		return
	}
	a.fenced(old, ws, now)
	switch {
	case old.State == protocol.Succeeded && t.State != protocol.Succeeded:
		a.fail("I3", "task %s leaves SUCCEEDED for %s", t.ID, t.State)
	case old.State == protocol.Failed && t.State == protocol.Failed:
		// It gives up what it kept for a redrive, in time and nothing else.
		if t.Command != nil || t.Run != old.Run || ws.Transition != nil || len(ws.Entries) > 0 || now.Sub(old.CompletedAt) < protocol.FailedRetention {
			a.fail("I13", "task %s is written over at %s after it FAILED", t.ID, now.Sub(old.CompletedAt))
		}
	case old.State == protocol.Failed && (t.State != protocol.Pending || t.Run != old.Run+1):
		a.fail("I3", "task %s leaves FAILED for %s without a new run", t.ID, t.State)
	case old.State != protocol.Failed && t.Run != old.Run:
		a.fail("I3", "task %s is in run %d after %d", t.ID, t.Run, old.Run)
	}
	if t.State == protocol.Running && old.Lease.Token != t.Lease.Token && s.running+1 > t.MaxAttempts && t.Run == old.Run {
		a.fail("I6", "task %s is given to a runner for the %d. time of %d", t.ID, s.running+1, t.MaxAttempts)
	}
	if t.Attempts > t.MaxAttempts {
		a.fail("I6", "task %s is at attempt %d of %d", t.ID, t.Attempts, t.MaxAttempts)
	}
	if !s.planned.IsZero() && (t.Plan == nil || t.Plan.Hash != s.planned) {
		a.fail("I8", "the frozen plan of task %s changes", t.ID)
	}
	if len(ws.Records) > 0 && (s.records > 0 || old.Committed) {
		a.fail("I4", "task %s commits its records again", t.ID)
	}
	if old.Committed && !t.Committed {
		a.fail("I4", "task %s takes its commit back", t.ID)
	}
	a.projected(old, ws)
	a.rests(t, "about to be written")
	if t.State == protocol.Failed && (old.Committed || s.records > 0) {
		a.fail("I4", "task %s ends FAILED with %d records committed", t.ID, s.records)
	}
	if ws.Free && !t.Identity.FirstWins {
		a.fail("I1", "the key of task %s would be free again", t.ID)
	}
	a.money(old, ws)
}

// fenced: a write is made over the row its writer has seen, and a runner gets
// a task only when nobody holds it.
func (a *audit) fenced(old *protocol.Task, ws *protocol.WriteSet, now time.Time) {
	t := &ws.Task
	if t.Version != old.Version {
		a.fail("I5", "task %s at version %d is written over by somebody who saw version %d", t.ID, old.Version, t.Version)
	}
	if old.State != protocol.Running {
		return
	}
	if t.State == protocol.Running && t.Lease.Token != old.Lease.Token && now.Before(old.Lease.Expires) {
		a.fail("I5", "task %s is taken from %s, whose lease lasts for another %v", t.ID, old.Lease.Owner, old.Lease.Expires.Sub(now))
	}
}

// claimed: a fresh lease is a whole one.
func (a *audit) claimed(t *protocol.Task, asked time.Time) {
	if left := t.Lease.Expires.Sub(asked); t.State == protocol.Running && left < a.world.script.World.Lease/2 {
		a.fail("I5", "task %s is claimed with a lease that ends in %v", t.ID, left)
	}
}

// projected: a projection changes no record, no money and no receipt. Steps that
// are written as one are not looked at here.
func (a *audit) projected(old *protocol.Task, ws *protocol.WriteSet) {
	t := &ws.Task
	alone := ws.Projected && old.Committed && t.State == protocol.Running
	if old.State != protocol.Succeeded && !alone {
		return
	}
	switch {
	case len(ws.Records) > 0 || len(ws.Entries) > 0 || ws.Transition != nil:
		a.fail("I10", "the projection of task %s writes records, money or history", t.ID)
	case t.State != old.State || t.Attempts != old.Attempts || !reflect.DeepEqual(t.Result, old.Result) || !t.CompletedAt.Equal(old.CompletedAt):
		a.fail("I10", "the projection of task %s changes its receipt", t.ID)
	}
}

// rests judges a row by itself.
func (a *audit) rests(t *protocol.Task, when string) {
	switch {
	case (t.State == protocol.Running) != (t.Lease.Token != ""):
		a.fail("I5", "task %s, %s, is %s and its lease is %q", t.ID, when, t.State, t.Lease.Token)
	case t.State == protocol.Succeeded && (t.Plan == nil || !t.Committed):
		a.fail("I4", "task %s, %s, SUCCEEDED without a commit", t.ID, when)
	case t.State == protocol.Succeeded && t.Command != nil:
		a.fail("I13", "task %s, %s, SUCCEEDED and holds its input", t.ID, when)
	case t.State != protocol.Succeeded && t.Command == nil && t.State != protocol.Failed:
		a.fail("I13", "task %s, %s, is %s and has lost its input", t.ID, when, t.State)
	}
	if t.Command == nil && t.Plan != nil {
		for _, m := range t.Plan.Mutations {
			if m.Fact != (protocol.Fact{}) {
				a.fail("I13", "the plan of task %s, which is %s, holds what was read", t.ID, t.State)
			}
		}
	}
}

// written takes a step into the books.
func (a *audit) written(old, t *protocol.Task, ws *protocol.WriteSet) {
	s := a.tasks[t.ID]
	if s == nil {
		return
	}
	if t.Run != old.Run || (t.State == protocol.Pending && old.State == protocol.Retrying) {
		s.running = 0 // a redrive gives all attempts anew
	}
	if t.State == protocol.Running && old.Lease.Token != t.Lease.Token {
		s.running++
	}
	if old.State == protocol.Running && t.State == protocol.Retrying && t.Attempts == old.Attempts-1 {
		s.running-- // its runner had to stop and gave the attempt back
	}
	s.records += len(ws.Records)
	if t.Plan != nil && s.planned.IsZero() {
		s.planned = t.Plan.Hash
	}
	s.row = *t
	if ws.Free && a.identities[t.Identity.Hash] == t.ID {
		delete(a.identities, t.Identity.Hash)
	}
	a.post(ws.Entries, s)
	a.world.note("write", t.ID, string(t.State), t.Version)
}

// inferring: nobody who knows of a frozen plan asks the model.
func (a *audit) inferring(t protocol.Task) {
	if t.Plan != nil {
		a.fail("I8", "task %s is inferred although its plan is frozen", t.ID)
	}
}
