package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// changes are what a transaction has decided to write, sent as one statement a
// table however many rows there are.
type changes struct {
	books   *books
	created []*protocol.Task
	updated []update
	records []protocol.Record
	history []protocol.Transition

	claims  bool     // what is created holds its identity, if nobody does
	taken   []holder // identities whose window was over
	dropped []holder // identities that are free again
	shown   []string // ids of records that search knows now
	edited  []protocol.Record
	arrays  [][]byte // on their way
}

// write is one transaction, or the last part of one; a session keeps its plans.
// Its parameters are explained where a migration makes it.
const write = `select memwrite_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// update is a task's new row with what the old one must still be.
type update struct {
	task  *protocol.Task
	old   protocol.Condition
	same  bool // only how it stands is another
	place *pgtype.TID
}

type holder struct {
	hash protocol.Hash
	task string
}

// queue sends everything. Rows are in the order of their keys, and tables in
// one order everywhere, so that two transactions do not wait for each other.
func (c *changes) queue(b *pgx.Batch) error {
	args, err := c.args()
	if err != nil {
		return err
	}
	c.queueTaken(b)
	if err := c.queueRecords(b); err != nil {
		return err
	}
	b.Queue(write, args...)
	return nil
}

// single says that one statement is the whole transaction.
func (c *changes) single() bool { return len(c.taken)+len(c.records)+len(c.edited) == 0 }

// fence queues a statement that has to meet n rows, or nothing is committed.
func fence(b *pgx.Batch, n int, sql string, args ...any) {
	b.Queue(fmt.Sprintf(`with met as (%s returning 1) select memwrite_require(count(*) = $%d) from met`, sql, len(args)+1), append(args, n)...)
}

// args are the parameters of write.
func (c *changes) args() ([]any, error) {
	slices.SortFunc(c.created, func(x, y *protocol.Task) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(c.updated, func(x, y update) int { return cmp.Compare(x.task.ID, y.task.ID) })
	created, err := c.tasks()
	if err != nil {
		return nil, err
	}
	steps, err := c.steps()
	if err != nil {
		return nil, err
	}
	dropped, droppers := holders(c.dropped)
	spaces, counts, history := c.transitions()
	entries := c.entries()
	c.arrays = [][]byte{created, steps, entries, history}
	return []any{dropped, droppers, c.shown, spaces, counts, c.moves(), history, entries, steps, created}, nil
}

// sent gives back what args took: it is on its way, or never will be.
func (c *changes) sent() {
	for _, b := range c.arrays {
		giveBack(b)
	}
	c.arrays = nil
}

func (c *changes) tasks() ([]byte, error) {
	rows := newRows(len(c.created), 16, 1500)
	for _, t := range c.created {
		rows.begin()
		rows.text(t.ID)
		rows.text(t.Workspace)
		rows.text(string(t.Kind))
		standing(rows, t)
		rows.bigint(nanos(t.CreatedAt))
		if err := rows.document(func(b []byte) ([]byte, error) { return doc.AppendTask(b, t) }); err != nil {
			return nil, err
		}
		if h := t.Identity.Hash; c.claims && !h.IsZero() {
			rows.bytea(h[:])
		} else {
			rows.bytea(nil)
		}
	}
	return rows.array(), nil
}

func (c *changes) steps() ([]byte, error) {
	rows := newRows(len(c.updated), 17, 1200)
	for i := range c.updated {
		u := &c.updated[i]
		rows.begin()
		rows.text(u.task.ID)
		standing(rows, u.task)
		put := doc.AppendTask
		if u.same {
			rows.bytea(nil) // the document stays
			put = doc.AppendStanding
		}
		if err := rows.document(func(b []byte) ([]byte, error) { return put(b, u.task) }); err != nil {
			return nil, err
		}
		if !u.same {
			rows.bytea(nil)
		}
		rows.text(string(u.old.State))
		rows.text(u.old.Token)
		rows.bigint(u.old.Version)
		rows.place(u.place)
	}
	return rows.array(), nil
}

// standing is the part of a task's row that changes.
func standing(rows *rows, t *protocol.Task) {
	rows.text(string(t.State))
	rows.bigint(t.Version)
	rows.integer(t.Attempts)
	rows.integer(t.MaxAttempts)
	rows.text(t.Lease.Owner)
	rows.text(t.Lease.Token)
	if at, ok := t.Due(); ok {
		rows.bigint(nanos(at))
	} else {
		rows.null(oidBigint)
	}
	rows.boolean(t.Committed)
	if t.Plan != nil {
		rows.bytea(t.Plan.Hash[:])
	} else {
		rows.bytea(nil)
	}
	rows.boolean(t.Command != nil)
}

func (c *changes) queueTaken(b *pgx.Batch) {
	if len(c.taken) > 0 {
		hashes, tasks := holders(c.taken)
		fence(b, len(c.taken), `update identities i set task_id = u.task from unnest($1::bytea[], $2::text[]) as u(hash, task) where i.hash = u.hash`, hashes, tasks)
	}
}

func holders(hs []holder) (hashes [][]byte, tasks []string) {
	for i := range hs {
		hashes, tasks = append(hashes, hs[i].hash[:]), append(tasks, hs[i].task)
	}
	return hashes, tasks
}

func (c *changes) queueRecords(b *pgx.Batch) error {
	if len(c.records) > 0 {
		n := len(c.records)
		ws, ids, wires, tasks := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		tenant, project, endUser, user, agent, run := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
		typ, key, body := make([][]byte, n), make([][]byte, n), make([][]byte, n)
		number, created, expires := make([]int64, n), make([]int64, n), make([]int64, n)
		projected, forgotten := make([]bool, n), make([]bool, n)
		for i := range c.records {
			r := &c.records[i]
			var err error
			if body[i], err = written(doc.OfRecord(r)); err != nil {
				return err
			}
			ws[i], ids[i], wires[i], tasks[i], number[i] = r.Workspace, r.ID, string(r.Wire), r.TaskID, r.Number
			tenant[i], project[i], endUser[i] = digest(r.Scope.Tenant), digest(r.Scope.Project), digest(r.Scope.EndUser)
			user[i], agent[i], run[i] = digest(r.Scope.UserID), digest(r.Scope.AgentID), digest(r.Scope.RunID)
			typ[i], key[i], created[i], expires[i] = digest(r.Type), digest(r.Key), nanos(r.CreatedAt), nanos(r.ExpiresAt)
			projected[i], forgotten[i] = r.Projected, r.Forgotten
		}
		b.Queue(`insert into records (workspace, id, number, wire, task_id, tenant, project, end_user, user_id, agent_id, run_id, type, key,
			created_at, expires_at, projected, forgotten, doc)
			select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[],
			$10::bytea[], $11::bytea[], $12::bytea[], $13::bytea[], $14::bigint[], $15::bigint[], $16::boolean[], $17::boolean[], $18::bytea[])`,
			ws, ids, number, wires, tasks, tenant, project, endUser, user, agent, run, typ, key, created, expires, projected, forgotten, body)
	}
	if n := len(c.edited); n > 0 {
		ids, typ, key, body := make([]string, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
		expires, projected, forgotten := make([]int64, n), make([]bool, n), make([]bool, n)
		for i := range c.edited {
			r := &c.edited[i]
			var err error
			if body[i], err = written(doc.OfRecord(r)); err != nil {
				return err
			}
			ids[i], typ[i], key[i], expires[i], projected[i], forgotten[i] = r.ID, digest(r.Type), digest(r.Key), nanos(r.ExpiresAt), r.Projected, r.Forgotten
		}
		fence(b, n, `update records r set type = u.type, key = u.key, expires_at = u.expires, projected = u.projected, forgotten = u.forgotten, doc = u.doc
			from unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[], $5::boolean[], $6::boolean[], $7::bytea[])
			as u(id, type, key, expires, projected, forgotten, doc) where r.id = u.id and not r.forgotten`,
			ids, typ, key, expires, projected, forgotten, body)
	}
	return nil
}

func (c *changes) entries() []byte {
	rows := newRows(len(c.books.entries), 10, 500)
	for i := range c.books.entries {
		e := &c.books.entries[i]
		rows.begin()
		rows.text(e.ID)
		rows.text(e.Account.Workspace)
		rows.text(string(e.Account.Unit))
		rows.text(e.Account.Period)
		rows.text(string(e.Kind))
		rows.bigint(e.Amount)
		rows.text(e.TaskID)
		rows.integer(e.Run)
		rows.text(e.Of)
		rows.bigint(nanos(e.At))
	}
	return rows.array()
}

func (c *changes) moves() []byte {
	rows := newRows(len(c.books.changed), 7, 150)
	for _, a := range c.books.accounts {
		if !c.books.changed[a] {
			continue
		}
		d := c.books.delta(a)
		rows.begin()
		rows.text(a.Workspace)
		rows.text(string(a.Unit))
		rows.text(a.Period)
		rows.bigint(d.Granted)
		rows.bigint(d.Available)
		rows.bigint(d.Reserved)
		rows.bigint(d.Spent)
	}
	return rows.array()
}

// transitions get their positions from the counters of their workspaces, whose
// rows are locked last and only until the commit. That is what makes a position
// that a reader sees later than another never smaller.
func (c *changes) transitions() (spaces []string, counts []int64, history []byte) {
	ranks := map[string]int64{}
	rows := newRows(len(c.history), 11, 300)
	for i := range c.history {
		t := &c.history[i]
		ranks[t.Workspace]++
		rows.begin()
		rows.text(t.Workspace)
		rows.bigint(ranks[t.Workspace])
		rows.text(t.TaskID)
		rows.integer(t.Number)
		rows.integer(t.Run)
		rows.integer(t.Attempt)
		rows.text(string(t.From))
		rows.text(string(t.To))
		rows.text(string(t.Class))
		rows.text(t.Code)
		rows.bigint(nanos(t.At))
	}
	spaces = slices.Sorted(maps.Keys(ranks))
	for _, w := range spaces {
		counts = append(counts, ranks[w])
	}
	return spaces, counts, rows.array()
}
