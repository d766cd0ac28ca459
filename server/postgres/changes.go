package postgres

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// changes are what a transaction has decided to write, sent as one statement a
// table however many rows there are.
type changes struct {
	books   *books
	created []protocol.Task
	updated []update
	records []protocol.Record
	history []protocol.Transition

	claimed []holder // identities that nobody may hold
	taken   []holder // identities whose window was over
	dropped []holder // identities that are free again
	shown   []string // ids of records that search knows now
	edited  []protocol.Record
}

// update is a task's new row with what the old one must still be.
type update struct {
	task protocol.Task
	old  protocol.Condition
}

type holder struct {
	hash protocol.Hash
	task string
}

// queue sends everything. Rows are in the order of their keys, and tables in
// one order everywhere, so that two transactions do not wait for each other.
func (c *changes) queue(b *pgx.Batch) error {
	slices.SortFunc(c.created, func(x, y protocol.Task) int { return cmp.Compare(x.ID, y.ID) })
	c.queueClaimed(b)
	if err := c.queueTasks(b); err != nil {
		return err
	}
	c.queueIdentities(b)
	if err := c.queueRecords(b); err != nil {
		return err
	}
	c.queueLedger(b)
	c.queueHistory(b)
	return nil
}

func (c *changes) queueTasks(b *pgx.Batch) error {
	if len(c.created) > 0 {
		var r taskRows
		for i := range c.created {
			if err := r.add(&c.created[i]); err != nil {
				return err
			}
		}
		b.Queue(insertTasks, r.args()...)
	}
	if len(c.updated) > 0 {
		slices.SortFunc(c.updated, func(x, y update) int { return cmp.Compare(x.task.ID, y.task.ID) })
		var r taskRows
		var states, tokens []string
		var versions []int64
		for i := range c.updated {
			u := &c.updated[i]
			if err := r.add(&u.task); err != nil {
				return err
			}
			states, tokens, versions = append(states, string(u.old.State)), append(tokens, u.old.Token), append(versions, u.old.Version)
		}
		fence(b, len(c.updated), updateTasks, append(r.args(), states, tokens, versions)...)
	}
	return nil
}

// fence queues a statement that has to meet n rows, or nothing is committed.
func fence(b *pgx.Batch, n int, sql string, args ...any) {
	b.Queue(fmt.Sprintf(`with met as (%s returning 1) select memwrite_require(count(*) = $%d) from met`, sql, len(args)+1), append(args, n)...)
}

// taskRows are tasks as columns.
type taskRows struct {
	id, workspace, kind, state, owner, token []string
	version, created                         []int64
	due                                      []*int64
	attempts, most                           []int32
	committed, input                         []bool
	planHash, doc                            [][]byte
}

func (r *taskRows) add(t *protocol.Task) error {
	body, err := written(doc.OfTask(t))
	if err != nil {
		return err
	}
	var hash []byte
	if t.Plan != nil {
		hash = t.Plan.Hash[:]
	}
	var due *int64
	if at, ok := t.Due(); ok {
		n := nanos(at)
		due = &n
	}
	r.id, r.workspace, r.kind, r.state = append(r.id, t.ID), append(r.workspace, t.Workspace), append(r.kind, string(t.Kind)), append(r.state, string(t.State))
	r.owner, r.token, r.due = append(r.owner, t.Lease.Owner), append(r.token, t.Lease.Token), append(r.due, due)
	r.version, r.created = append(r.version, t.Version), append(r.created, nanos(t.CreatedAt))
	r.attempts, r.most = append(r.attempts, int32(t.Attempts)), append(r.most, int32(t.MaxAttempts))
	r.committed, r.input = append(r.committed, t.Committed), append(r.input, t.Command != nil)
	r.planHash, r.doc = append(r.planHash, hash), append(r.doc, body)
	return nil
}

func (r *taskRows) args() []any {
	return []any{r.id, r.workspace, r.kind, r.state, r.version, r.attempts, r.most, r.owner, r.token, r.due, r.committed, r.planHash, r.input, r.created, r.doc}
}

const unnestTasks = `unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::int[], $8::text[], $9::text[], $10::bigint[],
	$11::boolean[], $12::bytea[], $13::boolean[], $14::bigint[], $15::bytea[]`

const insertTasks = `insert into tasks (id, workspace, kind, state, version, attempts, max_attempts, lease_owner, lease_token, due_at,
	committed, plan_hash, has_input, created_at, doc) select * from ` + unnestTasks + `)`

// The row lock is held already; the fence is in the statement all the same.
const updateTasks = `update tasks t set state = u.state, version = u.version, attempts = u.attempts, max_attempts = u.most, lease_owner = u.owner,
	lease_token = u.token, due_at = u.due, committed = u.committed, plan_hash = u.plan, has_input = u.input, doc = u.doc
	from ` + unnestTasks + `, $16::text[], $17::text[], $18::bigint[])
	as u(id, workspace, kind, state, version, attempts, most, owner, token, due, committed, plan, input, created, doc, old_state, old_token, old_version)
	where t.id = u.id and t.state = u.old_state and t.lease_token = u.old_token and t.version = u.old_version`

func (c *changes) queueIdentities(b *pgx.Batch) {
	if len(c.taken) > 0 {
		hashes, tasks := holders(c.taken)
		fence(b, len(c.taken), `update identities i set task_id = u.task from unnest($1::bytea[], $2::text[]) as u(hash, task) where i.hash = u.hash`, hashes, tasks)
	}
	if len(c.dropped) > 0 {
		hashes, tasks := holders(c.dropped)
		b.Queue(`delete from identities i using unnest($1::bytea[], $2::text[]) as u(hash, task) where i.hash = u.hash and i.task_id = u.task`, hashes, tasks)
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
	if len(c.shown) > 0 {
		b.Queue(`update records set projected = true where id = any($1::text[]) and not forgotten`, c.shown)
	}
	return nil
}

func (c *changes) queueLedger(b *pgx.Batch) {
	if es := c.books.entries; len(es) > 0 {
		n := len(es)
		ids, ws, units, periods, kinds, tasks, of := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		amounts, at, runs := make([]int64, n), make([]int64, n), make([]int32, n)
		for i, e := range es {
			ids[i], ws[i], units[i], periods[i], kinds[i] = e.ID, e.Account.Workspace, string(e.Account.Unit), e.Account.Period, string(e.Kind)
			amounts[i], tasks[i], runs[i], of[i], at[i] = e.Amount, e.TaskID, int32(e.Run), e.Of, nanos(e.At)
		}
		b.Queue(`insert into entries (id, workspace, unit, period, kind, amount, task_id, run, of_id, at)
			select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::int[], $9::text[], $10::bigint[])`,
			ids, ws, units, periods, kinds, amounts, tasks, runs, of, at)
	}
	var ws, units, periods []string
	var granted, available, reserved, spent []int64
	for _, a := range c.books.accounts {
		if d := c.books.delta(a); c.books.changed[a] {
			ws, units, periods = append(ws, a.Workspace), append(units, string(a.Unit)), append(periods, a.Period)
			granted, available, reserved, spent = append(granted, d.Granted), append(available, d.Available), append(reserved, d.Reserved), append(spent, d.Spent)
		}
	}
	if len(ws) > 0 {
		fence(b, len(ws), `update balances b set opened = true, granted = b.granted + u.granted, available = b.available + u.available,
			reserved = b.reserved + u.reserved, spent = b.spent + u.spent
			from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
			as u(workspace, unit, period, granted, available, reserved, spent)
			where b.workspace = u.workspace and b.unit = u.unit and b.period = u.period`, ws, units, periods, granted, available, reserved, spent)
	}
}

// queueHistory gives transitions their positions. The rows of the counters are
// locked last and only until the commit, which is what makes a position that a
// reader sees later than another never smaller.
func (c *changes) queueHistory(b *pgx.Batch) {
	n := len(c.history)
	if n == 0 {
		return
	}
	ranks := map[string]int64{}
	ws, ids, tasks, from, to, class, code := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	rank, at := make([]int64, n), make([]int64, n)
	number, run, attempt := make([]int32, n), make([]int32, n), make([]int32, n)
	for i, t := range c.history {
		ranks[t.Workspace]++
		ws[i], ids[i], tasks[i], rank[i], at[i] = t.Workspace, t.ID, t.TaskID, ranks[t.Workspace], nanos(t.At)
		number[i], run[i], attempt[i] = int32(t.Number), int32(t.Run), int32(t.Attempt)
		from[i], to[i], class[i], code[i] = string(t.From), string(t.To), string(t.Class), t.Code
	}
	var spaces []string
	var counts []int64
	for w := range ranks {
		spaces = append(spaces, w)
	}
	slices.Sort(spaces)
	for _, w := range spaces {
		counts = append(counts, ranks[w])
	}
	if len(spaces) > 1 { // of one there is no order
		b.Queue(`select 1 from histories where workspace = any($1::text[]) order by workspace for update`, spaces)
	}
	b.Queue(`with counted as (
			update histories h set position = h.position + c.n from unnest($1::text[], $2::bigint[]) as c(workspace, n)
			where h.workspace = c.workspace returning h.workspace, h.position - c.n as before),
		met as (
			insert into transitions (workspace, position, id, task_id, number, run, attempt, from_state, to_state, class, code, at)
			select t.workspace, c.before + t.rank, t.id, t.task_id, t.number, t.run, t.attempt, t.from_state, t.to_state, t.class, t.code, t.at
			from unnest($3::text[], $4::bigint[], $5::text[], $6::text[], $7::int[], $8::int[], $9::int[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[])
			as t(workspace, rank, id, task_id, number, run, attempt, from_state, to_state, class, code, at)
			join counted c on c.workspace = t.workspace returning 1)
		select memwrite_require(count(*) = $15) from met`,
		spaces, counts, ws, rank, ids, tasks, number, run, attempt, from, to, class, code, at, n)
}
