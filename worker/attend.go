package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/memwrite/memwrite-go"
)

// attendant stays with events until they end, and runs one again that failed in
// a way that can pass.
type attendant struct {
	client *memwrite.Client
	log    *slog.Logger

	mu       sync.Mutex
	redrives map[string]int // by event; this process's count
	total    int64
}

// maxRemembered bounds what is remembered of events that failed.
const maxRemembered = 10_000

// errNotRetryable is a FAILED event that the service will not run again.
var errNotRetryable = errors.New("worker: the event cannot be redriven")

// end waits for an event to end. ErrEventFailed means that it failed for good:
// for a reason another run cannot change, or after every redrive it is worth.
func (a *attendant) end(ctx context.Context, receipt memwrite.Receipt) (*memwrite.Event, error) {
	for {
		ev, err := a.client.Resume(ctx, receipt)
		if memwrite.VerdictOf(err).Action != memwrite.RedriveEvent || !a.count(receipt.EventID) {
			return ev, err
		}
		again, err := a.redrive(ctx, receipt.EventID, err)
		if err != nil {
			return nil, err
		}
		receipt.Status = again.Status
	}
}

// errRunAgain is a FAILED event that runs again now.
var errRunAgain = errors.New("worker: the event was redriven")

// again redrives the event that a write of the program's own ended in.
func (a *attendant) again(ctx context.Context, failed error) error {
	id := eventOf(failed)
	if id == "" || !a.count(id) {
		return failed
	}
	if _, err := a.redrive(ctx, id, failed); err != nil {
		return err
	}
	return errors.Join(errRunAgain, failed)
}

// redrive runs an event again that was counted before.
func (a *attendant) redrive(ctx context.Context, id string, failed error) (*memwrite.Event, error) {
	a.log.Warn("memwrite event failed and is run again", slog.String("event", id))
	ev, err := a.client.Redrive(ctx, id)
	var e *memwrite.Error
	switch {
	case errors.As(err, &e) && e.Code == "OPERATION_NOT_RETRYABLE":
		return nil, errors.Join(errNotRetryable, failed)
	case err != nil:
		a.uncount(id)
	}
	return ev, err
}

// count takes one of the redrives that an event is worth.
func (a *attendant) count(event string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.redrives[event] >= memwrite.MaxRedrives {
		return false
	}
	if len(a.redrives) >= maxRemembered {
		clear(a.redrives)
	}
	a.redrives[event]++
	a.total++
	return true
}

// uncount is for a redrive that did not happen.
func (a *attendant) uncount(event string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.redrives[event]--
	a.total--
}

// forget drops the count of an event that is over, and says what it was.
func (a *attendant) forget(event string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.redrives[event]
	delete(a.redrives, event)
	return n
}

func (a *attendant) made() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}
