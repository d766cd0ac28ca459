package mockserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/mockserver"
)

// watch is a store that judges every write as it is made, which a snapshot
// taken afterwards cannot.
type watch struct {
	protocol.Store

	mu     sync.Mutex // a write and the row it replaces are looked at as one
	broken []string
}

// Apply holds the row that was there against the one that took its place.
func (w *watch) Apply(ctx context.Context, ws protocol.WriteSet) (protocol.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old, _ := w.Task(ctx, ws.Task.ID)
	now, err := w.Store.Apply(ctx, ws)
	w.stopped(err)
	if err != nil {
		return now, err
	}
	if old.State == protocol.Running && ws.If.Token != old.Lease.Token {
		w.note("I5: a write to %s names lease %q, held is %q", old.ID, ws.If.Token, old.Lease.Token)
	}
	if old.State != protocol.Running && ws.If.Token != "" {
		w.note("I5: %s is %s and a runner wrote to it", old.ID, old.State)
	}
	if old.Plan != nil && (now.Plan == nil || now.Plan.Hash != old.Plan.Hash) {
		w.note("I8: the frozen plan of %s changed", old.ID)
	}
	if old.Committed && len(ws.Records) > 0 {
		w.note("I4: %s commits a second time", old.ID)
	}
	return now, nil
}

func (w *watch) Accept(ctx context.Context, a protocol.Acceptance) (protocol.Task, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, twin, err := w.Store.Accept(ctx, a)
	w.stopped(err)
	return t, twin, err
}

func (w *watch) Claim(ctx context.Context, now time.Time, limit int, decide func(protocol.Task) (protocol.WriteSet, bool)) ([]protocol.Task, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ts, err := w.Store.Claim(ctx, now, limit, decide)
	w.stopped(err)
	return ts, err
}

// stopped notes a write that an assertion stopped: it kept the store whole, and
// somebody still decided it.
func (w *watch) stopped(err error) {
	if errors.Is(err, protocol.ErrInvariant) {
		w.note("a write was stopped: %v", err)
	}
}

func (w *watch) note(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *watch) findings() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.broken, "\n")
}

// reader is an extractor that counts what it reads. What it keeps is in other
// words than the input, so that the input can be told from its result.
type reader struct {
	mu   sync.Mutex
	read map[string]int
}

// rawMark is in every input and in no fact.
const rawMark = "verbatim words of"

func (r *reader) extract(text string) ([]mockserver.Fact, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[text]++
	tea := mockserver.Fact{Text: "Drinks green tea every morning", Key: "tea"}
	city := mockserver.Fact{Text: "Moved to Lisbon last spring", Key: "city"}
	switch {
	case strings.HasSuffix(text, "nothing"):
		return nil, true
	case strings.HasSuffix(text, "both"):
		return []mockserver.Fact{tea, city}, true
	}
	return []mockserver.Fact{tea}, true
}

func (r *reader) times(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read[text]
}
