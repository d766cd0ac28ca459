package memwrite

import (
	"context"
	"iter"
	"sync"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// DefaultConcurrency is how many writes AddAll has on their way at one time.
const DefaultConcurrency = 8

// AddAllOptions change how AddAll works. The zero value is the defaults.
type AddAllOptions struct {
	Concurrency int // writes on their way at one time; 0 is DefaultConcurrency
}

// Added is what became of one request of AddAll.
type Added struct {
	Index   int // of the request, from 0; -1 on the entry that says why AddAll stopped
	Request AddRequest
	Result  *AddResult // nil with an error
}

// AddAll writes many facts, and yields what became of each as it becomes known:
// in the order the service answers, not in the order of the requests. Index says
// which one it was. Requests with the same Ref may be on their way together, and
// are one memory.
//
// The pace is the service's: a 429 pauses all of them, failures in a row shut
// the gate, as for any other calls of one Client. A request that fails yields
// its error and the rest goes on, unless the error says that a person or the
// calendar must act ([VerdictOf] says Hold), which every further request would
// be told too. Then no more are begun; those on their way are yielded, and a last
// entry with Index -1 carries the error again. It is the same when ctx ends.
// Without such an entry every request was yielded.
//
// Breaking out of the loop cancels what is on its way and returns when that has
// ended; whether those writes landed is not known, and sending them again with
// the same Ref is harmless. reqs is read in the caller's own goroutine, one
// request at a time and never after the loop; while it blocks, results wait.
// A second loop over the sequence sends everything again.
func (c *Client) AddAll(ctx context.Context, reqs iter.Seq[AddRequest], o AddAllOptions) iter.Seq2[Added, error] {
	return func(yield func(Added, error) bool) {
		if o.Concurrency < 0 {
			yield(Added{Index: -1}, invalid("AddAll", "Concurrency", "is below 0"))
			return
		}
		if o.Concurrency == 0 {
			o.Concurrency = DefaultConcurrency
		}
		ctx, cancel := context.WithCancelCause(ctx)
		a := &addAll{client: c, ctx: ctx, wake: make(chan struct{}, 1), yield: yield}
		defer func() { // also when yield or reqs panics
			cancel(context.Canceled)
			for a.open > 0 {
				a.take()
			}
		}()
		n := 0
		for req := range reqs {
			for a.open >= o.Concurrency || a.ready() {
				if !a.pass() {
					return
				}
			}
			if a.stop != nil || ctx.Err() != nil {
				break
			}
			a.start(Added{Index: n, Request: req})
			n++
		}
		for a.open > 0 {
			if !a.pass() {
				return
			}
		}
		if a.stop == nil && ctx.Err() != nil {
			a.stop = &Error{Op: "AddAll", Kind: endOf(ctx), Message: "stopped after " + itoa(n) + " requests", causes: causesOf(ctx)}
		}
		if a.stop != nil {
			yield(Added{Index: -1}, a.stop)
		}
	}
}

// addAll is one run. Its open, stop and yield belong to the caller's goroutine.
type addAll struct {
	client *Client
	ctx    context.Context
	yield  func(Added, error) bool
	open   int
	stop   error

	mu   sync.Mutex
	done []added
	wake chan struct{}
}

type added struct {
	Added
	err error
}

func (a *addAll) start(entry Added) {
	a.open++
	a.client.sched.Go(func() {
		res, err := a.client.Add(a.ctx, entry.Request)
		if err == nil {
			entry.Result = res
		}
		a.mu.Lock()
		a.done = append(a.done, added{entry, err})
		a.mu.Unlock()
		select {
		case a.wake <- struct{}{}:
		default:
		}
	})
}

func (a *addAll) ready() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.done) > 0
}

// take waits for the next result. What is on its way ends soon after its
// context, so that the wait needs none.
func (a *addAll) take() added {
	for {
		a.mu.Lock()
		if len(a.done) > 0 {
			next := a.done[0]
			a.done = a.done[1:]
			a.mu.Unlock()
			a.open--
			return next
		}
		a.mu.Unlock()
		_ = a.client.sched.Wait(context.WithoutCancel(a.ctx), sched.Forever, a.wake)
	}
}

// pass yields the next result, and tells whether the caller wants more.
func (a *addAll) pass() bool {
	next := a.take()
	if a.stop == nil && VerdictOf(next.err).Action == Hold {
		a.stop = next.err
	}
	return a.yield(next.Added, next.err)
}
