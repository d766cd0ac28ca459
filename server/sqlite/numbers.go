package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// block is how many record numbers are taken from the file at once: most tasks
// then need no write of their own for theirs. A process that is killed leaves
// the rest of its block unused.
const block = 512

// numbers is what is left of the block that was taken last.
type numbers struct {
	mu         sync.Mutex
	next, last int64 // the last one is part of it
}

// Allot gives the next n numbers.
func (s *Store) Allot(ctx context.Context, n int) (first int64, err error) {
	s.numbers.mu.Lock()
	defer s.numbers.mu.Unlock()
	if left := s.numbers.last - s.numbers.next + 1; left < int64(n) {
		// Nobody else takes numbers, so the new ones follow the old.
		more := int64(max(n, block))
		var last int64
		err := s.write(ctx, func(x *tx) error {
			if _, err := x.exec(`UPDATE number SET last = last + ?`, more); err != nil {
				return err
			}
			return x.query(`SELECT last FROM number`, nil, &last)
		})
		if err != nil {
			// The block may have been taken all the same. What is left of the
			// one before is not followed by what comes then.
			s.numbers.next, s.numbers.last = 0, -1
			return 0, err
		}
		if s.numbers.last < s.numbers.next { // nothing is left of another one
			s.numbers.next = last - more + 1
		}
		s.numbers.last = last
	}
	first = s.numbers.next
	s.numbers.next += int64(n)
	return first, nil
}

// giveBack leaves the rest of the block to whoever opens the file next.
func (s *Store) giveBack() error {
	s.numbers.mu.Lock()
	defer s.numbers.mu.Unlock()
	from, to := s.numbers.next-1, s.numbers.last
	s.numbers.next, s.numbers.last = 0, -1
	if from >= to {
		return nil
	}
	err := s.write(context.Background(), func(x *tx) error {
		_, err := x.exec(`UPDATE number SET last = ? WHERE last = ?`, from, to)
		return err
	})
	if errors.Is(err, protocol.ErrUnavailable) {
		return nil // numbers are lost, and nothing else
	}
	return err
}
