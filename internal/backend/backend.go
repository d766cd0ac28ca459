// Package backend lets the service talk to the engine: it puts a validated
// request into the protocol's words and a task into the wire's.
package backend

import (
	"context"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

// Backend is a service.Backend on an engine.
type Backend struct {
	engine atomic.Pointer[engine.Engine]
	sched  sched.Scheduler
}

// New makes a backend.
func New(e *engine.Engine, s sched.Scheduler) *Backend {
	b := &Backend{sched: s}
	b.Swap(e)
	return b
}

// Swap goes on with another engine, and so with another store. Calls that are
// under way end on the engine they began with.
func (b *Backend) Swap(e *engine.Engine) { b.engine.Store(e) }

var _ service.Backend = (*Backend)(nil)

// Submit accepts a write.
func (b *Backend) Submit(ctx context.Context, w service.Write) (service.Task, bool, error) {
	c := b.command(w)
	got, err := b.engine.Load().SubmitWith(ctx, w.Workspace, c, engine.Wish{PaidBy: w.PaidBy, Wait: w.Wait})
	if err != nil {
		return service.Task{}, false, refusal(err)
	}
	task := plain(got.Task)
	switch c.Kind {
	case protocol.MemorySyncAdd:
		err = b.told(ctx, got.Task.Workspace, &task)
	case protocol.Verbatim:
		said(task.Records, &c)
	}
	return task, got.Replayed, err
}

// said gives the records of a verbatim write the texts it came with. A replay
// has the same ones, so that it is answered byte for byte also when a record was
// forgotten meanwhile and nothing here knows its text any more.
func said(records []service.Record, c *protocol.Command) {
	for i := range records {
		if len(c.Messages) == 0 {
			records[i].Text = c.Text
		} else if i < len(c.Messages) {
			records[i].Text = c.Messages[i].Content
		}
	}
}

func (b *Backend) command(w service.Write) protocol.Command {
	importance := w.Importance
	c := protocol.Command{
		Kind: kindOf(w.Operation), Scope: scopeOf(w.Scope), Text: w.Text, Speaker: w.Speaker, OccurredAt: w.OccurredAt,
		EventDate: w.EventDate, Metadata: w.Metadata, Source: w.Source, EventType: w.EventType, SessionID: w.SessionID,
		Tags: w.Tags, TTL: w.TTL, Importance: &importance, KeepSimilar: w.NoDedup, Trace: w.Trace,
	}
	for _, m := range w.Messages {
		c.Messages = append(c.Messages, protocol.Message(m))
	}
	switch w.Operation {
	case service.OpAdd:
		c.ClientRef = w.Key
	case service.OpInfer, service.OpVerbatim:
		c.Key = w.Key
		if c.Key == "" {
			// Nobody can send this key: a header value holds no NUL.
			c.Key = "\x00" + b.random()
		}
	}
	return c
}

func (b *Backend) random() string {
	var raw [16]byte
	for i := 0; i < len(raw); i += 8 {
		n := b.sched.Uint64()
		for j := range 8 {
			raw[i+j] = byte(n >> (8 * j))
		}
	}
	return hex.EncodeToString(raw[:])
}

// Await gives the task as it is when the time is over.
func (b *Backend) Await(ctx context.Context, workspace, id string, wait time.Duration, done func(service.Task) bool) (service.Task, error) {
	t, err := b.engine.Load().Await(ctx, workspace, id, wait, func(t protocol.Task) bool { return done(progress(t)) })
	if err != nil && !errors.Is(err, sched.ErrElapsed) {
		return service.Task{}, refusal(err)
	}
	return b.view(ctx, t)
}

// Task reads one task.
func (b *Backend) Task(ctx context.Context, workspace, id string) (service.Task, error) {
	t, err := b.engine.Load().Task(ctx, workspace, id)
	if err != nil {
		return service.Task{}, refusal(err)
	}
	return b.view(ctx, t)
}

// Tasks lists inferred writes.
func (b *Backend) Tasks(ctx context.Context, workspace string, state service.State, page service.Page) ([]service.Task, error) {
	events, err := b.engine.Load().Events(ctx, workspace, protocol.State(state), place(page), page.Limit)
	if err != nil {
		return nil, refusal(err)
	}
	out := make([]service.Task, len(events))
	for i, e := range events {
		out[i] = ofEvent(e)
		if err := b.told(ctx, workspace, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Redrive starts a task again.
func (b *Backend) Redrive(ctx context.Context, workspace, id string) (service.Task, error) {
	t, err := b.engine.Load().Redrive(ctx, workspace, id)
	if err != nil {
		return service.Task{}, refusal(err)
	}
	return plain(t), nil
}

func refusal(err error) error {
	var short *protocol.InsufficientError
	switch {
	case errors.As(err, &short) && short.Account.Unit == protocol.Adds && !short.Strict:
		return service.ErrQuotaSilent
	case errors.As(err, &short) && short.Account.Unit == protocol.Adds:
		return service.ErrQuotaStrict
	case errors.Is(err, protocol.ErrInsufficient):
		return service.ErrCredits
	case errors.Is(err, protocol.ErrConflict):
		return service.ErrConflict
	case errors.Is(err, protocol.ErrNotRetryable):
		return service.ErrNotRetryable
	case errors.Is(err, protocol.ErrNotFound):
		return service.ErrNotFound
	case errors.Is(err, protocol.ErrUnavailable), errors.Is(err, engine.ErrClosed):
		return service.ErrUnavailable
	}
	return err
}

func kindOf(op service.Operation) protocol.Kind {
	switch op {
	case service.OpAdd:
		return protocol.MemorySyncAdd
	case service.OpTurn:
		return protocol.Turn
	case service.OpInfer:
		return protocol.Infer
	case service.OpVerbatim:
		return protocol.Verbatim
	}
	return ""
}

// OperationOf is a task's kind in the service's words.
func OperationOf(k protocol.Kind) service.Operation {
	for _, op := range [...]service.Operation{service.OpAdd, service.OpTurn, service.OpInfer, service.OpVerbatim} {
		if kindOf(op) == k {
			return op
		}
	}
	return service.Operation(k)
}

func scopeOf(s service.Scope) protocol.Scope {
	if s.Service == service.ServiceMemorySync {
		return protocol.Scope{Tenant: s.Tenant, Project: s.Project, EndUser: s.User}
	}
	return protocol.Scope{UserID: s.User, AgentID: s.Agent, RunID: s.Run}
}

func scopeView(w protocol.Wire, s protocol.Scope) service.Scope {
	if w == protocol.MemorySync {
		return service.Scope{Service: service.ServiceMemorySync, Tenant: s.Tenant, Project: s.Project, User: s.EndUser}
	}
	return service.Scope{Service: service.ServiceFishMem, User: s.UserID, Agent: s.AgentID, Run: s.RunID}
}

func place(p service.Page) *protocol.Place {
	if p.ID == "" {
		return nil
	}
	return &protocol.Place{Created: p.At, ID: p.ID}
}

func ofEvent(e protocol.Event) service.Task {
	out := service.Task{
		ID: e.ID, Operation: OperationOf(e.Kind), State: service.State(e.Status), Scope: scopeView(e.Kind.Wire(), e.Scope),
		Attempts: e.Attempts, MaxAttempts: e.MaxAttempts, Failure: e.Error, FailureCode: e.ErrorCode, FailureClass: string(e.Class),
		CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, StartedAt: e.StartedAt, CompletedAt: e.CompletedAt, NextAttempt: e.NextAttempt,
		Candidates: len(e.Results), Deduplicated: len(e.Results) > 0,
	}
	if len(e.Results) > 0 {
		out.Records = make([]service.Record, 0, len(e.Results))
	}
	for _, r := range e.Results {
		out.Deduplicated = out.Deduplicated && r.Existing
		out.Records = append(out.Records, service.Record{ID: r.ID, Number: r.Number, TaskID: e.ID, Scope: out.Scope})
	}
	return out
}

func plain(t protocol.Task) service.Task { return ofEvent(protocol.EventOf(t)) }

// progress is as much of a task as one who waits for it looks at.
func progress(t protocol.Task) service.Task {
	return service.Task{ID: t.ID, State: service.State(t.State), Attempts: t.Attempts}
}

// view is plain with what the records say.
func (b *Backend) view(ctx context.Context, t protocol.Task) (service.Task, error) {
	out := plain(t)
	return out, b.told(ctx, t.Workspace, &out)
}

// told reads the records of a task: all there is of them for an add, which its
// answer prints, and their texts for an event. One that was forgotten keeps its
// id and has no text.
func (b *Backend) told(ctx context.Context, workspace string, t *service.Task) error {
	if t.Operation != service.OpAdd && t.Operation != service.OpInfer {
		return nil
	}
	for i := range t.Records {
		r, err := b.engine.Load().Record(ctx, workspace, protocol.Wire(t.Scope.Service), t.Records[i].ID)
		switch {
		case errors.Is(err, protocol.ErrNotFound):
		case err != nil:
			return refusal(err)
		case t.Operation == service.OpAdd:
			t.Records[i] = recordView(r)
		default:
			t.Records[i].Text = r.Text
		}
	}
	return nil
}

func recordView(r protocol.Record) service.Record {
	scope := scopeView(r.Wire, r.Scope)
	return service.Record{
		ID: r.ID, Number: r.Number, UserNumber: userNumber(scope), TaskID: r.TaskID, Scope: scope, Text: r.Text, Type: r.Type, Key: r.Key,
		Importance: r.Importance, Metadata: r.Metadata, Source: r.Source, EventType: r.EventType, EventDate: r.EventDate, Tags: r.Tags,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, ExpiresAt: r.ExpiresAt,
	}
}

// userNumber stands for the user's row of the live service: the same for the
// same tenant and end user.
func userNumber(s service.Scope) int64 {
	h := uint32(2166136261) // FNV-1a, which hash/fnv allocates for
	for _, part := range [...]string{s.Tenant, "\x00", s.User} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	return int64(h >> 1)
}
