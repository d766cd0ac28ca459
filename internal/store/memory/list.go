package memory

import (
	"slices"
	"sort"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// placed is what a list orders by.
type placed interface {
	*row | *protocol.Record
}

func placeOf[T placed](x T) protocol.Place {
	switch v := any(x).(type) {
	case *row:
		return protocol.Place{Created: v.task.CreatedAt, ID: v.task.ID}
	case *protocol.Record:
		return protocol.Place{Created: v.CreatedAt, ID: v.ID}
	}
	return protocol.Place{}
}

// listBlock is how many rows of a list lie in one piece: an insertion in the
// middle moves no more than that, also when everything was created at one
// moment.
const listBlock = 256

// list is ordered by creation, then id, oldest first, so that what is new goes
// to the end. No block of it is empty.
type list[T placed] struct {
	blocks [][]T
	first  [1][]T // room for blocks, and for the rows of its first, as
	few    [4]T   // most end users have few records
}

func newList[T placed]() *list[T] {
	l := new(list[T])
	l.blocks = l.first[:0]
	return l
}

// find is where p is, or belongs.
func (l *list[T]) find(p protocol.Place) (block, i int) {
	older := func(x T) bool { return p.Before(placeOf(x)) }
	block = sort.Search(len(l.blocks), func(b int) bool { return !older(l.blocks[b][len(l.blocks[b])-1]) })
	if block < len(l.blocks) {
		rows := l.blocks[block]
		i = sort.Search(len(rows), func(i int) bool { return !older(rows[i]) })
	}
	return block, i
}

func (l *list[T]) insert(x T) {
	p := placeOf(x)
	b, i := l.find(p)
	if b == len(l.blocks) { // the common case: the clock moved on
		if b == 0 || len(l.blocks[b-1]) >= listBlock {
			l.blocks = append(l.blocks, append(l.block(), x))
			return
		}
		l.blocks[b-1] = append(l.blocks[b-1], x)
		return
	}
	rows := slices.Insert(l.blocks[b], i, x)
	if len(rows) <= listBlock {
		l.blocks[b] = rows
		return
	}
	half := len(rows) / 2
	l.blocks[b] = slices.Clone(rows[:half])
	l.blocks = slices.Insert(l.blocks, b+1, slices.Clone(rows[half:]))
}

// block is an empty block for the end of the list.
func (l *list[T]) block() []T {
	if len(l.blocks) == 0 {
		return l.few[:0]
	}
	return make([]T, 0, listBlock)
}

func (l *list[T]) remove(x T) {
	b, i := l.find(placeOf(x))
	if b == len(l.blocks) || l.blocks[b][i] != x {
		return
	}
	if l.blocks[b] = slices.Delete(l.blocks[b], i, i+1); len(l.blocks[b]) == 0 {
		l.blocks = slices.Delete(l.blocks, b, b+1)
	}
}

// cursor walks a list from the newest to the oldest.
type cursor[T placed] struct {
	list     *list[T]
	block, i int // of the next row; i may be one too low
}

// newest begins behind a place, or with the newest of all.
func (l *list[T]) newest(after *protocol.Place) cursor[T] {
	if after == nil {
		return cursor[T]{l, len(l.blocks), -1}
	}
	b, i := l.find(*after)
	return cursor[T]{l, b, i - 1}
}

// peek is the next row; false at the end.
func (c *cursor[T]) peek() (x T, ok bool) {
	if c.i < 0 {
		if c.block == 0 {
			return x, false
		}
		c.block--
		c.i = len(c.list.blocks[c.block]) - 1
	}
	return c.list.blocks[c.block][c.i], true
}

func (c *cursor[T]) skip() { c.i-- }
