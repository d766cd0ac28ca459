package memory

import (
	"slices"
	"sort"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// placed is what a list orders by; keep in mind that a list holds it oldest
// first, so that what is new goes to the end.
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

// list is ordered by creation, then id.
type list[T placed] struct{ rows []T }

// from is where p is, or belongs.
func (l *list[T]) from(p protocol.Place) int {
	return sort.Search(len(l.rows), func(i int) bool { return !p.Before(placeOf(l.rows[i])) })
}

func (l *list[T]) insert(x T) {
	p := placeOf(x)
	if n := len(l.rows); n == 0 || p.Before(placeOf(l.rows[n-1])) {
		l.rows = append(l.rows, x) // the common case: the clock moved on
		return
	}
	l.rows = slices.Insert(l.rows, l.from(p), x)
}

func (l *list[T]) remove(x T) {
	if i := l.from(placeOf(x)); i < len(l.rows) && l.rows[i] == x {
		l.rows = slices.Delete(l.rows, i, i+1)
	}
}

// newest walks from the newest that comes after a place, or from the newest of
// all, until f says stop.
func (l *list[T]) newest(after *protocol.Place, f func(T) bool) {
	n := len(l.rows)
	if after != nil {
		n = l.from(*after)
	}
	for i := n - 1; i >= 0; i-- {
		if !f(l.rows[i]) {
			return
		}
	}
}
