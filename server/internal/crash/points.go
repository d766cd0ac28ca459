//go:build unix

package crash

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Points are the places a child can be killed at: those of the protocol, and
// those around a transaction and an answer.
var Points = []protocol.Point{
	AcceptBefore, AcceptAfter, AnswerBefore, ClaimAfter,
	protocol.Wakeup, protocol.BeforeInference, protocol.Inference, protocol.AfterInference, protocol.AfterPlan,
	protocol.AfterCommit, protocol.Projecting, protocol.BeforeFinish, FinishAfter,
}

const (
	AcceptBefore protocol.Point = "accept_before" // nothing of the command is stored
	AcceptAfter  protocol.Point = "accept_after"  // it is stored and nobody knows
	AnswerBefore protocol.Point = "answer_before" // its answer is ready and not sent
	ClaimAfter   protocol.Point = "claim_after"   // a lease is held
	FinishAfter  protocol.Point = "finish_after"  // it is settled and nobody knows
)

// death comes at the n-th time a point is passed.
type death struct {
	point protocol.Point
	left  atomic.Int64
}

// pass ends the process if its time has come.
func (d *death) pass(p protocol.Point) {
	if p != d.point || d.left.Add(-1) != 0 {
		return
	}
	_, _ = os.Stdout.WriteString("at " + string(p) + "\n")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// At makes a death what the engine asks for faults.
func (d *death) At(p protocol.Point, _ protocol.Task) protocol.Fault {
	d.pass(p)
	return protocol.Fault{}
}

// Quiet says that a server without a point does not look for one: its tasks go
// from their plan to their end in one transaction, as in use.
func (d *death) Quiet(string) bool { return d.point == "" }

// mortal is a store whose process may end around a transaction.
type mortal struct {
	protocol.Store
	death *death
}

func (m mortal) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	m.death.pass(AcceptBefore)
	t, twin, err := m.Store.Accept(ctx, a)
	m.death.pass(AcceptAfter)
	return t, twin, err
}

func (m mortal) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	ts, err := m.Store.Claim(ctx, now, limit, decide)
	if len(ts) > 0 {
		m.death.pass(ClaimAfter)
	}
	return ts, err
}

func (m mortal) Apply(ctx context.Context, w protocol.WriteSet) (protocol.Task, error) {
	t, err := m.Store.Apply(ctx, w)
	if tr := w.Transition; err == nil && tr != nil {
		switch tr.To {
		case protocol.Running:
			m.death.pass(ClaimAfter)
		case protocol.Succeeded:
			m.death.pass(FinishAfter)
		}
	}
	return t, err
}

// Checkpoint passes through, for a store that has one.
func (m mortal) Checkpoint(ctx context.Context) error {
	if c, ok := m.Store.(interface{ Checkpoint(context.Context) error }); ok {
		return c.Checkpoint(ctx)
	}
	return nil
}

// mortalHandler may end before an answer to a write is sent.
func mortalHandler(d *death, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w = mortalWriter{w, d}
		}
		h.ServeHTTP(w, r)
	})
}

type mortalWriter struct {
	http.ResponseWriter
	death *death
}

func (w mortalWriter) WriteHeader(status int) {
	if status/100 == 2 {
		w.death.pass(AnswerBefore)
	}
	w.ResponseWriter.WriteHeader(status)
}
