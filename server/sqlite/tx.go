package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// tx is the transaction that is going on, and what the writer remembers of the
// file. It may remember, since nobody else writes; what a write that was
// refused has touched is read anew.
type tx struct {
	conn     driver.Conn
	prepared map[string]driver.Stmt
	args     []driver.NamedValue

	careful bool // writes have savepoints
	wary    int  // for so many groups more, identities are taken one by one
	wrote   bool // since the write that is going on began

	tasks    map[string]known
	balances map[protocol.Account]protocol.Balance
	moved    map[protocol.Account]bool // balances that are not written yet
	grants   map[string]bool           // ids of grants that are there
	places   map[string]bool           // workspaces that are there
	reserved map[int64]reservation     // what a task's run holds, by the task's row
	topics   *topics
	last     lasts
	pending  pending
	touched  []func() // by the write that is going on; each forgets one thing
}

// lasts are the numbers that were given last; 0: not known.
type lasts struct{ task, position, entry int64 }

// reservation is an entry that is not ended.
type reservation struct {
	id     string
	run    int
	amount int64
}

// known is a task with its row.
type known struct {
	task protocol.Task
	seq  int64
}

func newTx(conn driver.Conn) tx {
	return tx{conn: conn, prepared: map[string]driver.Stmt{}, tasks: map[string]known{},
		balances: map[protocol.Account]protocol.Balance{}, moved: map[protocol.Account]bool{}, grants: map[string]bool{}, places: map[string]bool{},
		reserved: map[int64]reservation{}, pending: newPending()}
}

// close ends the writer's connection.
func (x *tx) close() error {
	var errs []error
	for _, st := range x.prepared {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, x.conn.Close())...)
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

// move remembers what an account holds now; it is written by flush.
func (x *tx) move(b protocol.Balance) {
	x.balances[b.Account], x.moved[b.Account] = b, true
	x.touched = append(x.touched, func() { delete(x.balances, b.Account); delete(x.moved, b.Account) })
}

// flush inserts the rows that wait, and writes each account that was moved once,
// however many writes moved it.
func (x *tx) flush() error {
	if err := x.insertPending(); err != nil {
		return err
	}
	for a := range x.moved {
		b := x.balances[a]
		if _, err := x.exec(`INSERT INTO balance (workspace, unit, period, granted, available, reserved, spent, posted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (workspace, unit, period) DO UPDATE SET
			granted = excluded.granted, available = excluded.available, reserved = excluded.reserved, spent = excluded.spent, posted = excluded.posted`,
			a.Workspace, string(a.Unit), a.Period, b.Granted, b.Available, b.Reserved, b.Spent, x.last.entry); err != nil {
			return err
		}
	}
	clear(x.moved)
	if len(x.balances) >= maxRemembered || len(x.grants) >= maxRemembered {
		clear(x.balances)
		clear(x.grants)
	}
	if len(x.places) >= maxRemembered {
		clear(x.places)
	}
	if len(x.reserved) >= maxRemembered {
		clear(x.reserved)
	}
	return nil
}

// undo forgets what was touched since.
func (x *tx) undo(since int) {
	for _, f := range x.touched[since:] {
		f()
	}
	x.touched = x.touched[:since]
	clear(x.grants)
	clear(x.places)
}

// forget drops everything: the transaction is given up.
func (x *tx) forget() {
	clear(x.tasks)
	clear(x.balances)
	clear(x.moved)
	clear(x.grants)
	clear(x.places)
	clear(x.reserved)
	x.pending.drop()
	x.touched, x.last = x.touched[:0], lasts{}
}

// errRedo: a write was refused after it had written something, and nothing can
// take back that alone. The group is written again, with savepoints.
var errRedo = errors.New("sqlite: the group has to be written with savepoints")

// one runs a write, or a part of one, that may be refused without the others.
func (x *tx) one(f func(*tx) error) error {
	before, last := len(x.touched), x.last
	if !x.careful {
		x.wrote = false
		err := f(x)
		if err != nil && x.wrote {
			return fmt.Errorf("%w: %w", errRedo, err)
		}
		return err
	}
	// A savepoint inside this one serves its part alone.
	if err := x.plain("SAVEPOINT one"); err != nil {
		return failed(err)
	}
	err := f(x)
	if err == nil {
		err = x.flush()
	}
	if err != nil {
		x.undo(before)
		x.last = last
		if errors.Is(err, protocol.ErrUnavailable) {
			return err
		}
		if rerr := x.plain("ROLLBACK TO one"); rerr != nil {
			return failed(rerr)
		}
	}
	if rerr := x.plain("RELEASE one"); rerr != nil {
		return failed(rerr)
	}
	return err
}

// Statements go to the driver itself: what database/sql does in between is a
// tenth of what a write costs. They run without a context of their own, since a
// write that was begun is finished.

func (x *tx) statement(q string) (driver.Stmt, error) {
	if st := x.prepared[q]; st != nil {
		return st, nil
	}
	st, err := x.conn.Prepare(q)
	if err == nil {
		x.prepared[q] = st
	}
	return st, err
}

// values are arguments as the driver takes them; they are good until the next
// call.
func (x *tx) values(args []any) []driver.NamedValue {
	x.args = appendValues(x.args[:0], args)
	return x.args
}

func appendValues(to []driver.NamedValue, args []any) []driver.NamedValue {
	for i, a := range args {
		switch v := a.(type) {
		case int:
			a = int64(v)
		case nil, int64, string, []byte, bool:
		default:
			panic(fmt.Sprintf("sqlite: an argument of type %T", a))
		}
		to = append(to, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return to
}

func (x *tx) plain(q string) error {
	st, err := x.statement(q)
	if err == nil {
		_, err = st.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	}
	return err
}

// exec gives how many rows were changed.
func (x *tx) exec(q string, args ...any) (int64, error) {
	if err := x.insertPending(); err != nil {
		return 0, err
	}
	return x.execAside(q, args...)
}

// execAside is exec for what has nothing to do with the rows that wait.
func (x *tx) execAside(q string, args ...any) (int64, error) {
	st, err := x.statement(q)
	if err != nil {
		return 0, failed(err)
	}
	res, err := st.(driver.StmtExecContext).ExecContext(context.Background(), x.values(args))
	if err != nil {
		// SQLite takes back what a refused statement had done.
		return 0, failed(err)
	}
	n, err := res.RowsAffected()
	x.wrote = x.wrote || n > 0
	return n, err
}

// query reads one row; protocol.ErrNotFound when there is none.
func (x *tx) query(q string, args []any, dest ...any) error {
	found := false
	err := x.rows(q, args, func(row []driver.Value) error {
		if found {
			return nil
		}
		found = true
		for i, d := range dest {
			if err := assign(d, row[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = protocol.ErrNotFound
	}
	return err
}

// rows calls each for every row.
func (x *tx) rows(q string, args []any, each func([]driver.Value) error) (err error) {
	if err := x.insertPending(); err != nil {
		return err
	}
	st, err := x.statement(q)
	if err != nil {
		return failed(err)
	}
	rows, err := st.(driver.StmtQueryContext).QueryContext(context.Background(), x.values(args))
	if err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, failed(rows.Close())) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failed(err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// assign puts a column where it belongs.
func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case *int64:
		n, ok := v.(int64)
		if ok {
			*d = n
			return nil
		}
	case *bool:
		if n, ok := v.(int64); ok {
			*d = n != 0
			return nil
		}
	case *string:
		if s, ok := v.(string); ok {
			*d = s
			return nil
		}
	case *[]byte:
		switch s := v.(type) {
		case string:
			*d = []byte(s)
			return nil
		case []byte:
			*d = append([]byte(nil), s...)
			return nil
		case nil:
			*d = nil
			return nil
		}
	}
	return fmt.Errorf("sqlite: a column of type %T does not fit %T", v, dest)
}
