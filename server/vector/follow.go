package vector

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// lookEvery is how often the changes of other processes are read while nobody
// searches: a record that one of them forgot leaves the index within it.
const lookEvery = time.Second

// Records is a store whose records many processes write.
type Records interface {
	// Changed gives the records that were made or changed at a mark or behind
	// it, as they are now, and the mark to go on from; some are given again. The
	// greatest mark gives none. rebuilds grows when the index is to be made anew.
	Changed(ctx context.Context, since uint64, f func(protocol.Record) error) (next uint64, rebuilds int64, err error)
	// EachLive gives every record that is live at a time.
	EachLive(ctx context.Context, now time.Time, f func(protocol.Record) error) error
}

// Followed is an Index in memory of records that other processes write too: it
// is made from the records, and reads what changed since before each search.
type Followed struct {
	records Records
	sched   sched.Scheduler
	failed  func(error)
	stop    context.CancelFunc
	ended   chan struct{}

	index atomic.Pointer[Index]
	begun atomic.Int64 // looks

	mu       sync.Mutex // one look at a time
	looked   int64      // the latest look that succeeded
	mark     uint64
	rebuilds int64 // that the index has seen
	asked    int64 // that there were
}

var (
	_ protocol.Projector = (*Followed)(nil)
	_ protocol.Searcher  = (*Followed)(nil)
)

// Follow makes the index, which takes as long as it takes to read every live
// record, and keeps it until Close. failed is told of looks that fail between
// searches; the next one may succeed.
func Follow(ctx context.Context, records Records, s sched.Scheduler, failed func(error)) (*Followed, error) {
	f := &Followed{records: records, sched: s, failed: failed, ended: make(chan struct{})}
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.Go(func() { defer close(f.ended); f.loop(ctx) })
	return f, nil
}

func (f *Followed) loop(ctx context.Context) {
	for sched.Sleep(ctx, f.sched, lookEvery) == nil {
		err := f.look(ctx)
		if err == nil && f.old() {
			err = f.load(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.failed(err)
		}
	}
}

// Close ends the looking. A second call does nothing more.
func (f *Followed) Close() {
	f.stop()
	<-f.ended
}

// Project is what this process wrote. Others read it from the records.
func (f *Followed) Project(ctx context.Context, rs []protocol.Record) error {
	return f.index.Load().Project(ctx, rs)
}

// Nearest knows all that was committed when it was called.
func (f *Followed) Nearest(ctx context.Context, q protocol.RecordQuery, text string, n int) ([]protocol.Near, float64, error) {
	if err := f.look(ctx); err != nil {
		return nil, 0, err
	}
	return f.index.Load().Nearest(ctx, q, text, n)
}

// Len is how many records the index holds.
func (f *Followed) Len() int { return f.index.Load().Len() }

// look takes in what changed, unless somebody began to do so after it was called
// and is done.
func (f *Followed) look(ctx context.Context) error {
	before := f.begun.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.looked > before {
		return nil
	}
	this := f.begun.Add(1)
	x := f.index.Load()
	next, rebuilds, err := f.records.Changed(ctx, f.mark, func(r protocol.Record) error {
		return x.Project(ctx, []protocol.Record{r})
	})
	if err != nil {
		return fmt.Errorf("vector: what other nodes wrote: %w", err)
	}
	f.looked, f.mark, f.asked = this, next, rebuilds
	return nil
}

func (f *Followed) old() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked != f.rebuilds
}

// load makes an index anew. Searches ask the old one meanwhile.
func (f *Followed) load(ctx context.Context) error {
	mark, rebuilds, err := f.records.Changed(ctx, math.MaxUint64, nil) // before the first record is read
	if err != nil {
		return err
	}
	x := New()
	if err := f.records.EachLive(ctx, f.sched.Now(), func(r protocol.Record) error { return x.Project(ctx, []protocol.Record{r}) }); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.index.Store(x)
	f.mark, f.rebuilds, f.asked = mark, rebuilds, rebuilds
	return nil
}
