package sqlite

import (
	"sync"
	"sync/atomic"
)

// folding moves what is in the log to the file while writes go on, on a connection
// of its own: to sync the file takes as long as many commits. What was written
// meanwhile is little, and the writer moves it itself, so that the log begins
// anew. SQLite's own limit stays, for what this does not keep up with.
type folding struct {
	conn  tx
	since int // how much was written since the last began, in pages, roughly
	going sync.WaitGroup
	busy  atomic.Bool
	rest  atomic.Bool // one has ended, and what is left is the writer's
}

// foldEvery is how many pages are written before they are moved.
const foldEvery = 6000

// moveLog is the checkpoint that waits for nobody.
const moveLog = `PRAGMA wal_checkpoint(PASSIVE)`

// written tells of a group. Who leads calls it. What goes wrong is met again by
// SQLite's own checkpoint, and when the store is closed.
func (f *folding) written(x *tx, writes int) {
	if f.rest.CompareAndSwap(true, false) {
		_ = x.plain(moveLog)
	}
	if f.since += 12 + 4*writes; f.since < foldEvery || !f.busy.CompareAndSwap(false, true) {
		return
	}
	f.since = 0
	f.going.Go(func() {
		_ = f.conn.plain(moveLog)
		f.rest.Store(true)
		f.busy.Store(false)
	})
}

// close waits for the one that goes on; none begins any more.
func (f *folding) close() error {
	f.going.Wait()
	if f.conn.conn == nil {
		return nil
	}
	return f.conn.close()
}
