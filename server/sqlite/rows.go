package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
)

// rows of one table wait here for the end of their group, and are inserted by as
// few statements as can be: what a statement costs beside its rows is as much as
// a row or two.
type rows struct {
	columns int
	insert  [most]string // of 1, 2, 3, … rows
	args    []driver.NamedValue
}

// most is how many rows a statement has at most.
const most = 16

// A row that is refused leaves those before it in the table, and the whole group
// or savepoint is given up. So SQLite need not keep a journal of each statement's
// own, which is a copy of every page it changes.
//
// rowsInto takes values as an INSERT has them: what is the same in every row is
// written out, since to bind a value costs as much as to store it. "" is a
// parameter for each column.
func rowsInto(table, columns, values, tail string) rows {
	if values == "" {
		values = "?" + strings.Repeat(", ?", strings.Count(columns, ","))
	}
	r := rows{columns: strings.Count(values, "?")}
	row := "(" + values + ")"
	for i := range r.insert {
		r.insert[i] = fmt.Sprintf("INSERT OR FAIL INTO %s (%s) VALUES %s%s%s", table, columns, row, strings.Repeat(", "+row, i), tail)
	}
	return r
}

// pending are the rows of a group that are not inserted yet.
type pending struct {
	identity, task, reserve, entry, begin, transition, record rows

	first int64 // the lowest of the tasks that wait; 0: none does
	now   int64 // when identities are looked at
}

const (
	entryRow      = "workspace, task, run, part, seq, id, unit, period, kind, amount, at"
	transitionRow = "workspace, position, task, number, run, attempt, was, state, class, code, at"
)

func newPending() pending {
	return pending{
		identity:   rowsInto("identity", "hash, task, expires", "", takeOver),
		task:       rowsInto("task", "seq, id, workspace, kind, state, version, token, due, created, doc", "?, ?, ?, ?, ?, 1, ?, ?, ?, ?", ""),
		reserve:    rowsInto("entry", entryRow, "?, ?, 1, 0, ?, ?, ?, ?, 'reserve', ?, ?", ""),
		entry:      rowsInto("entry", entryRow, "", ""),
		begin:      rowsInto("transition", transitionRow, "?, ?, ?, 1, 1, 0, '', 'PENDING', '', '', ?", ""),
		transition: rowsInto("transition", transitionRow, "", ""),
		record: rowsInto("record", "id, number, workspace, wire, task, created, expires, projected, forgotten, "+
			"tenant, project, end_user, user_id, agent_id, run_id, topic, doc", "", ""),
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
func (p *pending) all() [6]*rows {
	return [...]*rows{&p.task, &p.reserve, &p.entry, &p.begin, &p.transition, &p.record}
}

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
// for calls it first, as exec and query do. What is refused then may be another
// write's, so the group has to be written again.
func (x *tx) insertPending() (err error) {
	defer func() { x.wrote = x.wrote || err != nil }()
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
		n := min(most, len(args)/r.columns)
		some := args[:n*r.columns]
		args = args[len(some):]
		if len(more) > 0 {
			x.args = appendValues(append(x.args[:0], some...), more)
			some = x.args
		}
		for j := range some {
			some[j].Ordinal = j + 1
		}
		st, err := x.statement(r.insert[n-1])
		if err != nil {
			return 0, failed(err)
		}
		res, err := st.(driver.StmtExecContext).ExecContext(context.Background(), some)
		if err != nil {
			return 0, failed(err)
		}
		done, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		changed += done
	}
	return changed, nil
}
