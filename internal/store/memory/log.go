package memory

import "sort"

// logChunk is how many rows of a log lie in one piece. Growing never copies
// what is there.
const logChunk = 512

// log is rows in the order they came; they are only added.
type log[T any] struct {
	chunks [][]T
	n      int
}

func (l *log[T]) append(x T) {
	if l.n%logChunk == 0 {
		l.chunks = append(l.chunks, make([]T, 0, logChunk))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, x)
	l.n++
}

func (l *log[T]) at(i int) *T { return &l.chunks[i/logChunk][i%logChunk] }

// from is the first row that is is true of, if it is true of all behind that
// as well.
func (l *log[T]) from(is func(*T) bool) int {
	return sort.Search(l.n, func(i int) bool { return is(l.at(i)) })
}

// slice copies rows i to j.
func (l *log[T]) slice(i, j int) []T {
	if i >= j {
		return nil
	}
	out := make([]T, 0, j-i)
	for ; i < j; i++ {
		out = append(out, *l.at(i))
	}
	return out
}

func (l *log[T]) all() []T { return l.slice(0, l.n) }
