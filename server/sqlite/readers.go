package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"

	"modernc.org/sqlite"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// readers are connections for short reads, which go to the driver itself as the
// writer's statements do: what database/sql does in between costs as much as the
// row. Each reads at a moment of its own, and no longer than one statement.
type readers struct {
	dsn   string
	slots chan struct{}

	mu     sync.Mutex
	free   []*tx
	closed bool
}

func newReaders(dsn string, n int) *readers {
	return &readers{dsn: dsn, slots: make(chan struct{}, n)}
}

// do lends a connection to f. A read that was begun is not given up: one row is
// there sooner than another goroutine could stop that.
func (p *readers) do(ctx context.Context, f func(*tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.slots }()
	r, err := p.take(ctx)
	if err != nil {
		return err
	}
	err = f(r)
	if errors.Is(err, protocol.ErrUnavailable) {
		_ = r.close()
		return err
	}
	p.mu.Lock()
	p.free = append(p.free, r)
	p.mu.Unlock()
	return err
}

func (p *readers) take(ctx context.Context) (*tx, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if n := len(p.free); n > 0 {
		r := p.free[n-1]
		p.free = p.free[:n-1]
		return r, nil
	}
	connector, err := sqlite.NewConnector(p.dsn)
	if err != nil {
		return nil, failed(err)
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return nil, failed(err)
	}
	return &tx{conn: conn, prepared: map[string]driver.Stmt{}}, nil
}

// close waits for the reads that were begun.
func (p *readers) close() error {
	for range cap(p.slots) {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	p.closed = true
	var errs []error
	for _, r := range p.free {
		errs = append(errs, r.close())
	}
	p.free = nil
	p.mu.Unlock()
	for range cap(p.slots) {
		<-p.slots
	}
	return errors.Join(errs...)
}
