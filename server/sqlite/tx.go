package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// tx is the transaction that is going on, and what the writer remembers of the
// file. It may remember, since nobody else writes; what a write that was
// refused has touched is read anew.
type tx struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt

	tasks    map[string]known
	balances map[protocol.Account]protocol.Balance
	grants   map[string]bool // ids of grants that are there
	touched  []func()        // by the write that is going on; each forgets one thing
}

// known is a task with its row.
type known struct {
	task protocol.Task
	seq  int64
}

func newTx(conn *sql.Conn) tx {
	return tx{conn: conn, prepared: map[string]*sql.Stmt{}, tasks: map[string]known{},
		balances: map[protocol.Account]protocol.Balance{}, grants: map[string]bool{}}
}

// maxRemembered bounds each map.
const maxRemembered = 4096

// know remembers a task that was read; keep one that was written. What has come
// to its end is not looked at again soon.
func (x *tx) know(t *protocol.Task, seq int64) {
	if len(x.tasks) >= maxRemembered {
		clear(x.tasks)
	}
	x.tasks[t.ID] = known{*t, seq}
}

func (x *tx) keep(t *protocol.Task, seq int64) {
	if t.State.Terminal() {
		delete(x.tasks, t.ID)
		return
	}
	x.know(t, seq)
	id := t.ID
	x.touched = append(x.touched, func() { delete(x.tasks, id) })
}

func (x *tx) drop(id string) { delete(x.tasks, id) }

func (x *tx) remember(b protocol.Balance) {
	if len(x.balances) >= maxRemembered {
		clear(x.balances)
	}
	x.balances[b.Account] = b
	x.touched = append(x.touched, func() { delete(x.balances, b.Account) })
}

// undo forgets what was touched since.
func (x *tx) undo(since int) {
	for _, f := range x.touched[since:] {
		f()
	}
	x.touched = x.touched[:since]
	clear(x.grants)
}

// forget drops everything: the transaction is given up.
func (x *tx) forget() {
	clear(x.tasks)
	clear(x.balances)
	clear(x.grants)
	x.touched = x.touched[:0]
}

// Statements run without a context of their own: a write that was begun is
// finished.

func (x *tx) statement(q string) (*sql.Stmt, error) {
	if st := x.prepared[q]; st != nil {
		return st, nil
	}
	st, err := x.conn.PrepareContext(context.Background(), q)
	if err == nil {
		x.prepared[q] = st
	}
	return st, err
}

func (x *tx) plain(q string) error {
	st, err := x.statement(q)
	if err == nil {
		_, err = st.ExecContext(context.Background())
	}
	return err
}

func (x *tx) exec(q string, args ...any) (sql.Result, error) {
	st, err := x.statement(q)
	if err != nil {
		return nil, failed(err)
	}
	res, err := st.ExecContext(context.Background(), args...)
	return res, failed(err)
}

// query reads one row; protocol.ErrNotFound when there is none.
func (x *tx) query(q string, args []any, dest ...any) error {
	st, err := x.statement(q)
	if err != nil {
		return failed(err)
	}
	err = st.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return protocol.ErrNotFound
	}
	return failed(err)
}
