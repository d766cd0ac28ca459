package sqlite

import (
	"sync"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// fresh remembers the records that were added last, as they are in the file: who
// waits for a write mostly reads what it made at once.
type fresh struct {
	mu    sync.Mutex
	epoch int64 // moves when a record changes
	rows  map[place]row
}

type place struct{ workspace, id string }

// maxFresh bounds how many are kept.
const maxFresh = 512

// begin is called before a set is written, and end when it is written or not.
func (f *fresh) begin(p *step) int64 {
	if p.changes() {
		f.forget()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

func (f *fresh) end(p *step, epoch int64, err error) {
	if p.changes() {
		f.forget()
		return
	}
	if err != nil || len(p.records) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch != f.epoch {
		return // one of these may have been changed since
	}
	if f.rows == nil || len(f.rows) >= maxFresh {
		f.rows = make(map[place]row, maxFresh)
	}
	for _, r := range p.records {
		f.rows[place{r.r.Workspace, r.r.ID}] = r
	}
}

// changes says that a set changes records that were there before it.
func (p *step) changes() bool {
	if len(p.w.Superseded) > 0 {
		return true
	}
	added := 0
	for _, r := range p.records {
		if r.projected {
			added++
		}
	}
	return p.w.Projected && p.w.Task.Plan != nil && added < len(p.w.Task.Plan.Mutations)
}

func (f *fresh) get(workspace, id string) (protocol.Record, bool, error) {
	f.mu.Lock()
	row, ok := f.rows[place{workspace, id}]
	f.mu.Unlock()
	if !ok {
		return protocol.Record{}, false, nil
	}
	r, err := doc.Record([]byte(row.raw), row.projected)
	return r, true, err
}

// forget is called before and after a write that changes records.
func (f *fresh) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch++
	clear(f.rows)
}
