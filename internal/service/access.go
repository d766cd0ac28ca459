package service

import (
	"container/list"
	"sync"
	"time"
)

// maxAccesses is how many records a node remembers the reads of; the ones read
// longest ago are forgotten first.
const maxAccesses = 100_000

// access is how often a record was read, and when last.
type access struct {
	count int64
	last  time.Time
}

// accesses counts the reads of records: by id, and as the hit of a search.
// Like rate windows they are of this node and of this process: they order
// searches and decide nothing, and a write for every read would cost more than
// the read.
type accesses struct {
	mu    sync.Mutex
	byID  map[accessKey]*list.Element
	order list.List // of *accessed, read last in front
}

type accessKey struct{ workspace, id string }

type accessed struct {
	accessKey
	access
}

// of is what is known of a record before this read.
func (a *accesses) of(workspace, id string) access {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := a.byID[accessKey{workspace, id}]; ok {
		return e.Value.(*accessed).access
	}
	return access{}
}

// note counts one read of each record.
func (a *accesses) note(workspace string, now time.Time, records ...Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byID == nil {
		a.byID = map[accessKey]*list.Element{}
	}
	for _, r := range records {
		key := accessKey{workspace, r.ID}
		e, ok := a.byID[key]
		if !ok {
			e = a.order.PushFront(&accessed{accessKey: key})
			a.byID[key] = e
		}
		got := e.Value.(*accessed)
		got.count++
		got.last = now
		a.order.MoveToFront(e)
		if len(a.byID) > maxAccesses {
			oldest := a.order.Remove(a.order.Back()).(*accessed)
			delete(a.byID, oldest.accessKey)
		}
	}
}

func (a *accesses) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byID = nil
	a.order.Init()
}
