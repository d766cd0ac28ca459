// Package memory keeps everything in this process: the default of a test. One
// mutex makes a transaction; nothing on the way of a write grows with what is
// stored already.
package memory

import (
	"container/heap"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Store is a protocol.Store without a disk.
type Store struct {
	mu         sync.RWMutex
	spaces     map[string]*space
	tasks      map[string]*row
	due        dueHeap
	identities map[protocol.Hash]*row // that holds it
	numbers    atomic.Int64           // the last one given
	position   int64
}

var _ protocol.Store = (*Store)(nil)

// row is a task and its place in the heap of due work; -1 is not in it.
type row struct {
	task  protocol.Task
	at    time.Time
	heap  int
	filed group // which list of its space it is in
	list  *list[*row]
}

// space is what one workspace owns.
type space struct {
	workspace protocol.Workspace
	tasks     map[group]*list[*row]
	records   map[string]*protocol.Record
	byNumber  map[int64]*protocol.Record
	byOwner   map[owner]*list[*protocol.Record]
	byTopic   map[topic][]*protocol.Record
	ledger    ledger
	changes   log[change]
}

// New makes an empty store. The first MemorySync record it allots a number for
// gets firstNumber, or 1 when that is not positive.
func New(firstNumber int64) *Store {
	s := &Store{spaces: map[string]*space{}, tasks: map[string]*row{}, identities: map[protocol.Hash]*row{}}
	s.numbers.Store(max(firstNumber, 1) - 1)
	return s
}

// Close does nothing: the store stays readable.
func (s *Store) Close() error { return nil }

func (s *Store) PutWorkspace(_ context.Context, w protocol.Workspace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp := s.spaces[w.ID]; sp != nil {
		sp.workspace = w
		return nil
	}
	s.spaces[w.ID] = &space{workspace: w, tasks: map[group]*list[*row]{}, records: map[string]*protocol.Record{}, byNumber: map[int64]*protocol.Record{},
		byOwner: map[owner]*list[*protocol.Record]{}, byTopic: map[topic][]*protocol.Record{},
		ledger: ledger{balances: map[protocol.Account]*protocol.Balance{}, grants: map[string]bool{}, open: map[string]int64{}}}
	return nil
}

func (s *Store) Workspace(_ context.Context, id string) (protocol.Workspace, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sp := s.spaces[id]; sp != nil {
		return sp.workspace, nil
	}
	return protocol.Workspace{}, protocol.ErrNotFound
}

func (s *Store) Allot(_ context.Context, n int) (int64, error) {
	return s.numbers.Add(int64(n)) - int64(n) + 1, nil
}

// schedule puts a row where its due time belongs.
func (s *Store) schedule(r *row) {
	at, ok := r.task.Due()
	switch {
	case !ok && r.heap >= 0:
		heap.Remove(&s.due, r.heap)
	case !ok:
	case r.heap >= 0:
		r.at = at
		heap.Fix(&s.due, r.heap)
	default:
		r.at = at
		heap.Push(&s.due, r)
	}
}

// dueHeap has the row that is due first at its top.
type dueHeap []*row

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].task.ID < h[j].task.ID
	}
	return h[i].at.Before(h[j].at)
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].heap, h[j].heap = i, j }
func (h *dueHeap) Push(x any)   { r := x.(*row); r.heap = len(*h); *h = append(*h, r) }
func (h *dueHeap) Pop() any {
	n := len(*h) - 1
	r := (*h)[n]
	(*h)[n] = nil
	*h = (*h)[:n]
	r.heap = -1
	return r
}
