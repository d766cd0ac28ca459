package postgres

import (
	"cmp"
	"fmt"
	"maps"
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

// write is one transaction, or the last part of one; a session keeps its plans.
const write = `select memwrite_write($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::int[], $9::int[], $10::text[],
	$11::text[], $12::bigint[], $13::boolean[], $14::bytea[], $15::boolean[], $16::bigint[], $17::bytea[], $18::text[], $19::text[],
	$20::text[], $21::text[], $22::bigint[], $23::int[], $24::int[], $25::text[], $26::text[], $27::bigint[], $28::boolean[],
	$29::bytea[], $30::boolean[], $31::bigint[], $32::bytea[], $33::text[], $34::text[], $35::bigint[], $36::bytea[], $37::text[],
	$38::text[], $39::text[], $40::text[], $41::text[], $42::text[], $43::text[], $44::bigint[], $45::text[], $46::int[],
	$47::text[], $48::bigint[], $49::text[], $50::text[], $51::text[], $52::bigint[], $53::bigint[], $54::bigint[], $55::bigint[],
	$56::text[], $57::bigint[], $58::text[], $59::bigint[], $60::text[], $61::text[], $62::int[], $63::int[], $64::int[],
	$65::text[], $66::text[], $67::text[], $68::text[], $69::bigint[])`

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

// args are the columns of memwrite_write; see the migration that makes it.
func (c *changes) args() ([]any, error) {
	slices.SortFunc(c.created, func(x, y protocol.Task) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(c.updated, func(x, y update) int { return cmp.Compare(x.task.ID, y.task.ID) })
	var created, updated taskRows
	for i := range c.created {
		if err := created.add(&c.created[i]); err != nil {
			return nil, err
		}
	}
	var states, tokens []string
	var versions []int64
	for i := range c.updated {
		u := &c.updated[i]
		if err := updated.add(&u.task); err != nil {
			return nil, err
		}
		states, tokens, versions = append(states, string(u.old.State)), append(tokens, u.old.Token), append(versions, u.old.Version)
	}
	claimed, claimants := holders(c.claimed)
	dropped, droppers := holders(c.dropped)
	args := append([]any{claimed, claimants}, created.args()...)
	args = append(append(args, updated.args()...), states, tokens, versions, dropped, droppers, c.shown)
	return append(append(args, c.ledger()...), c.transitions()...), nil
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

func (c *changes) ledger() []any {
	es := c.books.entries
	n := len(es)
	ids, ws, units, periods, kinds, tasks, of := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	amounts, at, runs := make([]int64, n), make([]int64, n), make([]int32, n)
	for i, e := range es {
		ids[i], ws[i], units[i], periods[i], kinds[i] = e.ID, e.Account.Workspace, string(e.Account.Unit), e.Account.Period, string(e.Kind)
		amounts[i], tasks[i], runs[i], of[i], at[i] = e.Amount, e.TaskID, int32(e.Run), e.Of, nanos(e.At)
	}
	var spaces, unit, period []string
	var granted, available, reserved, spent []int64
	for _, a := range c.books.accounts {
		if d := c.books.delta(a); c.books.changed[a] {
			spaces, unit, period = append(spaces, a.Workspace), append(unit, string(a.Unit)), append(period, a.Period)
			granted, available, reserved, spent = append(granted, d.Granted), append(available, d.Available), append(reserved, d.Reserved), append(spent, d.Spent)
		}
	}
	return []any{ids, ws, units, periods, kinds, amounts, tasks, runs, of, at, spaces, unit, period, granted, available, reserved, spent}
}

// transitions get their positions from the counters of their workspaces, whose
// rows are locked last and only until the commit. That is what makes a position
// that a reader sees later than another never smaller.
func (c *changes) transitions() []any {
	n := len(c.history)
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
	spaces := slices.Sorted(maps.Keys(ranks))
	counts := make([]int64, len(spaces))
	for i, w := range spaces {
		counts[i] = ranks[w]
	}
	return []any{spaces, counts, ws, rank, ids, tasks, number, run, attempt, from, to, class, code, at}
}
