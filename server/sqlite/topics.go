package sqlite

import (
	"database/sql/driver"
	"encoding/binary"
	"sync/atomic"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// topics remembers which topics there may be records of: most facts are the first
// of theirs, and need not be looked for in the file. It is a Bloom filter, so it
// may take one topic for another, and forgets none.
type topics struct {
	bits []atomic.Uint64
	left atomic.Int64 // how many more it is good for; below zero it says yes to all
}

const (
	topicBits  = 16 // of the filter for each topic
	topicMarks = 4  // that each topic sets
)

// newTopics has room for so many more than there are.
func newTopics(there, more int64) *topics {
	words := int64(1)
	for words*64 < (there+more)*topicBits {
		words *= 2
	}
	t := &topics{bits: make([]atomic.Uint64, words)}
	t.left.Store(words * 64 / topicBits)
	return t
}

// marks are the bits of a topic, which is a hash.
func (t *topics) marks(topic []byte) (at [topicMarks]uint64) {
	a, b := binary.LittleEndian.Uint64(topic), binary.LittleEndian.Uint64(topic[8:])|1
	for i := range at {
		at[i] = (a + uint64(i)*b) % (uint64(len(t.bits)) * 64)
	}
	return at
}

// add is called before a record of the topic can be seen.
func (t *topics) add(topic []byte) {
	t.left.Add(-1)
	for _, at := range t.marks(topic) {
		t.bits[at/64].Or(1 << (at % 64))
	}
}

// may says no only when there is no record of the topic.
func (t *topics) may(topic []byte) bool {
	if t.left.Load() < 0 {
		return true
	}
	for _, at := range t.marks(topic) {
		if t.bits[at/64].Load()&(1<<(at%64)) == 0 {
			return false
		}
	}
	return true
}

// moreTopics is what a filter has room for beside twice what is there.
const moreTopics = 1 << 18

// learn reads the topics of the file.
func (x *tx) learn(more int64) error {
	var there int64
	if err := x.query(`SELECT count(*) FROM record WHERE topic IS NOT NULL`, nil, &there); err != nil {
		return err
	}
	x.topics = newTopics(there, there+more)
	return x.rows(`SELECT topic FROM record WHERE topic IS NOT NULL`, nil, func(row []driver.Value) error {
		var topic []byte
		err := assign(&topic, row[0])
		if err == nil {
			x.topics.add(topic)
		}
		return err
	})
}

// topicOf is what a record is compared by, or NULL. It is known from now on.
func (x *tx) topicOf(r *protocol.Record) any {
	if r.Forgotten || r.Wire != protocol.MemorySync {
		return nil
	}
	hash := topic(r.Workspace, r.Wire, r.Scope, r.Type, r.Key)
	x.topics.add(hash)
	return hash
}
