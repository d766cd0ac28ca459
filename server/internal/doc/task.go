package doc

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

type task struct {
	ID          string         `json:"id"`
	Workspace   string         `json:"workspace"`
	Kind        protocol.Kind  `json:"kind"`
	Scope       scope          `json:"scope"`
	Identity    identity       `json:"identity,omitzero"`
	Fingerprint []byte         `json:"fingerprint"`
	Command     *command       `json:"command,omitempty"`
	State       protocol.State `json:"state"`
	Run         int            `json:"run"`
	Attempts    int            `json:"attempts,omitempty"`
	MaxAttempts int            `json:"max_attempts"`
	Invalid     int            `json:"invalid,omitempty"`
	Lease       lease          `json:"lease,omitzero"`
	NextAttempt time.Time      `json:"next_attempt,omitzero"`
	Failure     *failure       `json:"failure,omitempty"`
	Plan        *plan          `json:"plan,omitempty"`
	Committed   bool           `json:"committed,omitempty"`
	Projection  string         `json:"projection"`
	Result      *result        `json:"result,omitempty"`
	Unit        protocol.Unit  `json:"unit,omitempty"`
	Period      string         `json:"period,omitempty"`
	Account     string         `json:"account,omitempty"` // its workspace
	Amount      int64          `json:"amount,omitempty"`
	Reservation string         `json:"reservation,omitempty"`
	Transitions int            `json:"transitions"`
	Created     time.Time      `json:"created,omitzero"`
	Updated     time.Time      `json:"updated,omitzero"`
	Started     time.Time      `json:"started,omitzero"`
	Completed   time.Time      `json:"completed,omitzero"`
}

type identity struct {
	Hash      []byte        `json:"hash,omitempty"`
	Window    time.Duration `json:"window,omitempty"`
	FirstWins bool          `json:"first_wins,omitempty"`
}

func (i identity) IsZero() bool { return i.Hash == nil && i.Window == 0 && !i.FirstWins }

type lease struct {
	Owner   string    `json:"owner"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

type failure struct {
	Class   protocol.Class `json:"class"`
	Code    string         `json:"code"`
	Message string         `json:"message,omitempty"`
}

type command struct {
	Kind        protocol.Kind      `json:"kind"`
	Scope       scope              `json:"scope"`
	Key         string             `json:"key,omitempty"`
	ClientRef   string             `json:"client_ref,omitempty"`
	Target      string             `json:"target,omitempty"`
	Text        string             `json:"text,omitempty"`
	Messages    []protocol.Message `json:"messages,omitzero"`
	Speaker     string             `json:"speaker,omitempty"`
	OccurredAt  string             `json:"occurred_at,omitempty"`
	Role        string             `json:"role,omitempty"`
	EventDate   string             `json:"event_date,omitempty"`
	Metadata    *string            `json:"metadata,omitempty"` // as it was sent, byte for byte
	Source      string             `json:"source,omitempty"`
	EventType   string             `json:"event_type,omitempty"`
	SessionID   string             `json:"session_id,omitempty"`
	Tags        []string           `json:"tags,omitzero"`
	TTL         time.Duration      `json:"ttl,omitempty"`
	Importance  *float64           `json:"importance,omitempty"`
	KeepSimilar bool               `json:"keep_similar,omitempty"`
	Trace       string             `json:"trace,omitempty"`
}

type plan struct {
	Hash      []byte     `json:"hash"`
	Mutations []mutation `json:"mutations,omitzero"`
	Evidence  []evidence `json:"evidence,omitzero"`
}

type mutation struct {
	Record     string   `json:"record"`
	Number     int64    `json:"number,omitempty"`
	Text       string   `json:"text,omitempty"`
	Type       string   `json:"type,omitempty"`
	Key        string   `json:"key,omitempty"`
	Replaces   bool     `json:"replaces,omitempty"`
	Supersedes []string `json:"supersedes,omitzero"`
}

type result struct {
	Outcome protocol.Outcome `json:"outcome"`
	Records []evidence       `json:"records,omitzero"`
}

type evidence struct {
	ID       string `json:"id"`
	Number   int64  `json:"number,omitempty"`
	Existing bool   `json:"existing,omitempty"`
}

// OfTask writes a task down, all but its version.
func OfTask(t *protocol.Task) ([]byte, error) {
	d := task{
		ID: t.ID, Workspace: t.Workspace, Kind: t.Kind, Scope: scope(t.Scope),
		Identity:    identity{unset(t.Identity.Hash), t.Identity.Window, t.Identity.FirstWins},
		Fingerprint: t.Fingerprint[:], Command: ofCommand(t.Command), State: t.State,
		Run: t.Run, Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Invalid: t.Invalid,
		Lease: lease{t.Lease.Owner, t.Lease.Token, instant(t.Lease.Expires)}, NextAttempt: instant(t.NextAttempt),
		Failure: (*failure)(t.Failure), Committed: t.Committed, Projection: string(t.Projection),
		Unit: t.Account.Unit, Period: t.Account.Period, Account: t.Account.Workspace, Amount: t.Amount, Reservation: t.Reservation,
		Transitions: t.Transitions, Created: instant(t.CreatedAt), Updated: instant(t.UpdatedAt),
		Started: instant(t.StartedAt), Completed: instant(t.CompletedAt),
	}
	if p := t.Plan; p != nil {
		d.Plan = &plan{Hash: p.Hash[:], Evidence: each(p.Evidence, func(e protocol.Evidence) evidence { return evidence(e) }),
			Mutations: each(p.Mutations, func(m protocol.Mutation) mutation {
				return mutation{m.RecordID, m.Number, m.Fact.Text, m.Fact.Type, m.Fact.Key, m.Fact.Replaces, m.Supersedes}
			})}
	}
	if r := t.Result; r != nil {
		d.Result = &result{r.Outcome, each(r.Records, func(e protocol.Evidence) evidence { return evidence(e) })}
	}
	return json.Marshal(&d)
}

// Task reads a task back. The error holds nothing of the document.
func Task(doc []byte, version int64) (protocol.Task, error) {
	var d task
	if err := json.Unmarshal(doc, &d); err != nil {
		return protocol.Task{}, fmt.Errorf("doc: a task cannot be read: %T", err)
	}
	t := protocol.Task{
		ID: d.ID, Workspace: d.Workspace, Kind: d.Kind, Scope: protocol.Scope(d.Scope),
		Identity:    protocol.Identity{Hash: hash(d.Identity.Hash), Window: d.Identity.Window, FirstWins: d.Identity.FirstWins},
		Fingerprint: hash(d.Fingerprint), Command: d.Command.back(), State: d.State, Version: version,
		Run: d.Run, Attempts: d.Attempts, MaxAttempts: d.MaxAttempts, Invalid: d.Invalid,
		Lease: protocol.Lease(d.Lease), NextAttempt: d.NextAttempt,
		Failure: (*protocol.Failure)(d.Failure), Committed: d.Committed, Projection: protocol.Projection(d.Projection),
		Account: protocol.Account{Workspace: d.Account, Unit: d.Unit, Period: d.Period}, Amount: d.Amount, Reservation: d.Reservation,
		Transitions: d.Transitions, CreatedAt: d.Created, UpdatedAt: d.Updated, StartedAt: d.Started, CompletedAt: d.Completed,
	}
	if p := d.Plan; p != nil {
		t.Plan = &protocol.Plan{Hash: hash(p.Hash), Evidence: each(p.Evidence, func(e evidence) protocol.Evidence { return protocol.Evidence(e) }),
			Mutations: each(p.Mutations, func(m mutation) protocol.Mutation {
				return protocol.Mutation{RecordID: m.Record, Number: m.Number, Fact: protocol.Fact{Text: m.Text, Type: m.Type, Key: m.Key, Replaces: m.Replaces}, Supersedes: m.Supersedes}
			})}
	}
	if r := d.Result; r != nil {
		t.Result = &protocol.Result{Outcome: r.Outcome, Records: each(r.Records, func(e evidence) protocol.Evidence { return protocol.Evidence(e) })}
	}
	return t, nil
}

func ofCommand(c *protocol.Command) *command {
	if c == nil {
		return nil
	}
	d := &command{Kind: c.Kind, Scope: scope(c.Scope), Key: c.Key, ClientRef: c.ClientRef, Target: c.Target, Text: c.Text, Messages: c.Messages,
		Speaker: c.Speaker, OccurredAt: c.OccurredAt, Role: c.Role, EventDate: c.EventDate, Metadata: ofRaw(c.Metadata),
		Source: c.Source, EventType: c.EventType, SessionID: c.SessionID, Tags: c.Tags, TTL: c.TTL, Importance: c.Importance, KeepSimilar: c.KeepSimilar, Trace: c.Trace}
	return d
}

func (d *command) back() *protocol.Command {
	if d == nil {
		return nil
	}
	return &protocol.Command{Kind: d.Kind, Scope: protocol.Scope(d.Scope), Key: d.Key, ClientRef: d.ClientRef, Target: d.Target, Text: d.Text, Messages: d.Messages,
		Speaker: d.Speaker, OccurredAt: d.OccurredAt, Role: d.Role, EventDate: d.EventDate, Metadata: raw(d.Metadata),
		Source: d.Source, EventType: d.EventType, SessionID: d.SessionID, Tags: d.Tags, TTL: d.TTL, Importance: d.Importance, KeepSimilar: d.KeepSimilar, Trace: d.Trace}
}

func ofRaw(m json.RawMessage) *string {
	if m == nil {
		return nil
	}
	s := string(m)
	return &s
}

func raw(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

// each keeps nil apart from empty.
func each[A, B any](in []A, f func(A) B) []B {
	if in == nil {
		return nil
	}
	out := make([]B, len(in))
	for i, a := range in {
		out[i] = f(a)
	}
	return out
}
