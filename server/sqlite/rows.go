package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
)

// rows of one table wait here for the end of their group, and are inserted by as
// few statements as can be: what a statement costs beside its rows is as much as
// a row.
type rows struct {
	columns int
	insert  [sizes]string // of 1<<i rows
	args    []driver.NamedValue
}

// sizes is how many numbers of rows have a statement of their own: 1, 2, 4, 8, 16.
const sizes = 5

func rowsInto(table, columns, tail string) rows {
	r := rows{columns: strings.Count(columns, ",") + 1}
	row := "(?" + strings.Repeat(", ?", r.columns-1) + ")"
	for i := range r.insert {
		r.insert[i] = fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s%s", table, columns, row, strings.Repeat(", "+row, 1<<i-1), tail)
	}
	return r
}

// pending are the rows of a group that are not inserted yet.
type pending struct {
	identity, task, entry, transition, record rows

	first int64 // the lowest of the tasks that wait; 0: none does
	now   int64 // when identities are looked at
}

func newPending() pending {
	return pending{
		identity:   rowsInto("identity", "hash, task, expires", takeOver),
		task:       rowsInto("task", "seq, id, workspace, kind, state, version, token, due, created, doc", ""),
		entry:      rowsInto("entry", "workspace, task, run, part, seq, id, unit, period, kind, amount, at", ""),
		transition: rowsInto("transition", "workspace, position, task, number, run, attempt, was, state, class, code, at", ""),
		record: rowsInto("record", "id, number, workspace, wire, task, created, expires, projected, forgotten, "+
			"tenant, project, end_user, user_id, agent_id, run_id, topic, doc", ""),
	}
}

// drop gives up what waits.
func (p *pending) drop() {
	p.identity.args = p.identity.args[:0]
	for _, r := range p.all() {
		r.args = r.args[:0]
	}
	p.first = 0
}

// all but the identities, in the order in which rows name each other.
func (p *pending) all() [4]*rows { return [...]*rows{&p.task, &p.entry, &p.transition, &p.record} }

// add inserts a row: with its group, unless it has a savepoint of its own, which
// has to tell at once what stands against it.
func (x *tx) add(r *rows, args ...any) error {
	if len(args) != r.columns {
		panic(fmt.Sprintf("sqlite: %d values for %d columns", len(args), r.columns))
	}
	r.args = appendValues(r.args, args)
	x.wrote = true
	if x.careful {
		_, err := x.insert(r)
		return err
	}
	return nil
}

// insertPending inserts what waits. Whoever looks at a table that rows may wait
// for calls it first, as exec and query do.
func (x *tx) insertPending() error {
	if err := x.holdPending(); err != nil {
		return err
	}
	for _, r := range x.pending.all() {
		if len(r.args) == 0 {
			continue
		}
		if _, err := x.insert(r); err != nil {
			return err
		}
	}
	x.pending.first = 0
	return nil
}

// insert gives how many rows were changed. Its statements may need more than what
// is in the rows.
func (x *tx) insert(r *rows, more ...any) (int64, error) {
	var changed int64
	args := r.args
	r.args = r.args[:0]
	for len(args) > 0 {
		i := sizes - 1
		for 1<<i*r.columns > len(args) {
			i--
		}
		some := args[:1<<i*r.columns]
		args = args[len(some):]
		if len(more) > 0 {
			x.args = appendValues(append(x.args[:0], some...), more)
			some = x.args
		}
		for j := range some {
			some[j].Ordinal = j + 1
		}
		st, err := x.statement(r.insert[i])
		if err != nil {
			return 0, failed(err)
		}
		res, err := st.(driver.StmtExecContext).ExecContext(context.Background(), some)
		if err != nil {
			return 0, failed(err)
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}
