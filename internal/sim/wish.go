package sim

import (
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
)

// wish is an intent with what its callers know of it. Twins share one: two
// workers that were given the same record.
type wish struct {
	Intent
	world    *world
	ws       string
	text     string
	name     string // client_ref or Idempotency-Key; the speaker of a turn
	at       string // when a turn was said
	task     string // the task its callers were told of
	deletion string // the task that took away what it stored
	done     bool   // a caller was told that it is stored, for good
	moot     bool   // its name belongs to another command, or it was forgotten, or it FAILED too long ago
}

func (w *world) newWish(i int) *wish {
	in := w.script.Intents[i]
	x := &wish{Intent: in, world: w, ws: workspaceID(in.Workspace), text: textOf(in), name: fmt.Sprintf("note-%04d", in.Number),
		at: time.Date(2026, 8, 30, 9, 0, in.Number, 0, time.UTC).Format(time.RFC3339)}
	if in.Of > 0 {
		of := w.script.Intents[in.Of-1]
		x.name = fmt.Sprintf("note-%04d", of.Number)
		if in.Kind == WantTurn {
			// The same words at the same time by another speaker are another
			// turn; that is all a turn's name can share.
			x.text, x.at, x.Facts, x.Twice, x.Shared = textOf(of), time.Date(2026, 8, 30, 9, 0, of.Number, 0, time.UTC).Format(time.RFC3339), of.Facts, of.Twice, of.Shared
			x.name = fmt.Sprintf("speaker-%d", in.Number)
		}
	}
	return x
}

func (x *wish) user() string { return fmt.Sprintf("user-%d", x.User) }

// command is what the wish asks of an engine.
func (x *wish) command() protocol.Command {
	importance := 0.5 // what the wire's absent one means
	c := protocol.Command{Text: x.text, Importance: &importance}
	switch x.Kind {
	case WantAdd:
		c.Kind, c.ClientRef = protocol.MemorySyncAdd, x.name
		c.Scope = protocol.Scope{Tenant: x.ws, Project: service.DefaultProject, EndUser: x.user()}
	case WantTurn:
		c.Kind, c.Speaker, c.OccurredAt = protocol.Turn, x.name, x.at
		c.Scope = protocol.Scope{Tenant: x.ws, Project: service.DefaultProject, EndUser: x.user()}
	case WantInfer:
		c.Kind, c.Key = protocol.Infer, x.name
		c.Scope = protocol.Scope{UserID: x.user()}
	case WantVerbatim:
		c.Kind, c.Key = protocol.Verbatim, x.name
		c.Scope = protocol.Scope{UserID: x.user()}
	}
	return c
}

func (x *wish) identity() protocol.Identity {
	c := x.command()
	return protocol.IdentityOf(x.ws, &c)
}

// keyed: its name is a key, which another command under it conflicts with.
func (x *wish) keyed() bool { return x.Kind == WantInfer || x.Kind == WantVerbatim }

// mine says that a command is the one this wish asks for, as far as its name
// binds: a reference and a turn are the first one's, whatever the text.
func (x *wish) mine(c *protocol.Command) bool {
	w := x.command()
	switch x.Kind {
	case WantAdd:
		return c.Kind == w.Kind && c.ClientRef == w.ClientRef && c.Scope == w.Scope
	case WantTurn:
		return c.Kind == w.Kind && c.Speaker == w.Speaker && c.OccurredAt == w.OccurredAt && c.Text == w.Text && c.Scope == w.Scope
	}
	return c.Kind == w.Kind && c.Text == w.Text && c.Scope == w.Scope
}

// told is an answer that names a task: it must be this wish's own, and for a
// key always the same one (I2).
func (x *wish) told(id string) {
	a := x.world.audit
	s := a.tasks[id]
	switch {
	case s == nil:
		a.fail("I2", "%s was answered with task %q, which does not exist", x, id)
	case s.row.Workspace != x.ws:
		a.fail("I2", "%s was answered with task %s of another workspace", x, id)
	case !x.mine(&s.command):
		a.fail("I2", "%s was answered with task %s, which is another command", x, id)
	case x.keyed() && x.task != "" && x.task != id:
		a.fail("I2", "%s was answered with task %s and before with %s", x, id, x.task)
	}
	x.task = id
}

// conflicted is a refusal because the name belongs to another command.
func (x *wish) conflicted() {
	a := x.world.audit
	if h := x.identity(); !h.FirstWins {
		if s := a.tasks[a.identities[h.Hash]]; s != nil && !x.mine(&s.command) {
			x.moot = true
			return
		}
	}
	a.fail("I2", "%s was told of a conflict and there is none", x)
}

func (x *wish) String() string {
	return fmt.Sprintf("%s %s of %s (%q)", x.Kind, x.name, x.user(), x.text)
}
