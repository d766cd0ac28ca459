package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// query is SQL that grows with what is asked for.
type query struct {
	where []string
	args  []any
}

func (q *query) and(format string, args ...any) {
	places := make([]any, len(args))
	for i := range args {
		q.args = append(q.args, args[i])
		places[i] = fmt.Sprintf("$%d", len(q.args))
	}
	q.where = append(q.where, fmt.Sprintf(format, places...))
}

func (q *query) sql(selected, order string, limit int) string {
	s := selected + " where " + strings.Join(q.where, " and ") + " order by " + order
	if limit > 0 {
		q.args = append(q.args, limit)
		s += fmt.Sprintf(" limit $%d", len(q.args))
	}
	return s
}

// every is all states, to look for each in an index that has the state before
// the time.
var every = []string{string(protocol.Pending), string(protocol.Running), string(protocol.Retrying), string(protocol.Succeeded), string(protocol.Failed)}

// Tasks takes as many as are asked for of each kind and state, and the newest of
// those: what else is stored is not looked at.
func (s *Store) Tasks(ctx context.Context, q protocol.TaskQuery) ([]protocol.Task, error) {
	states := every
	if q.State != "" {
		states = []string{string(q.State)}
	}
	at, id := int64(math.MaxInt64), ""
	if q.After != nil {
		at, id = nanos(q.After.Created), q.After.ID
	}
	if len(q.Kinds) == 0 {
		return list(ctx, s, oneTask, `select `+taskColumns+` from tasks t where t.workspace = $1 and t.state = any($2::text[]) and (t.created_at, t.id) < ($3, $4)
			order by t.created_at desc, t.id desc limit $5`, q.Workspace, states, at, id, bound(q.Limit))
	}
	kinds := make([]string, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = string(k)
	}
	return list(ctx, s, oneTask, `select `+taskColumns+` from unnest($2::text[]) k, unnest($3::text[]) s, lateral (
			select * from tasks where workspace = $1 and kind = k collate "C" and state = s collate "C" and (created_at, id) < ($4, $5)
			order by created_at desc, id desc limit $6) t
		order by t.created_at desc, t.id desc limit $6`, q.Workspace, kinds, states, at, id, bound(q.Limit))
}

func (s *Store) Record(ctx context.Context, workspace, id string) (protocol.Record, error) {
	return one(ctx, s, scanRecord, `select `+recordColumns+` from records r where r.workspace = $1 and r.id = $2`, workspace, id)
}

func (s *Store) RecordByNumber(ctx context.Context, workspace string, n int64) (protocol.Record, error) {
	return one(ctx, s, scanRecord, `select `+recordColumns+` from records r where r.number = $1 and r.number <> 0 and r.workspace = $2`, n, workspace)
}

// Records lists by whichever of the names has an index.
func (s *Store) Records(ctx context.Context, rq protocol.RecordQuery) ([]protocol.Record, error) {
	q := scoped(rq)
	if q == nil {
		return nil, nil
	}
	if rq.After != nil {
		q.and("(r.created_at, r.id) < (%s, %s)", nanos(rq.After.Created), rq.After.ID)
	}
	sql := q.sql(`select `+recordColumns+` from records r`, "r.created_at desc, r.id desc", rq.Limit)
	return list(ctx, s, scanRecord, sql, q.args...)
}

// scoped are the conditions of the records r that a query may see, or nil where
// there can be none.
func scoped(rq protocol.RecordQuery) *query {
	q := &query{}
	q.and("r.workspace = %s", rq.Workspace)
	q.where = append(q.where, "not r.forgotten")
	names := map[string]string{"user_id": rq.Scope.UserID, "agent_id": rq.Scope.AgentID, "run_id": rq.Scope.RunID}
	if rq.Wire == protocol.MemorySync {
		if rq.Scope.EndUser == "" {
			return nil
		}
		q.where = append(q.where, "r.wire = 'memorysync'")
	} else {
		if rq.Scope.UserID == "" && rq.Scope.AgentID == "" && rq.Scope.RunID == "" {
			return nil
		}
		q.where = append(q.where, "r.wire = 'fishmem'")
	}
	names["tenant"], names["project"], names["end_user"] = rq.Scope.Tenant, rq.Scope.Project, rq.Scope.EndUser
	for _, column := range []string{"end_user", "tenant", "project", "user_id", "agent_id", "run_id"} {
		if name := names[column]; name != "" {
			q.and("r."+column+" = %s", digest(name))
			if strings.HasSuffix(column, "_id") {
				q.where = append(q.where, "r."+column+" <> ''") // the words of its index
			}
		}
	}
	q.and("(r.expires_at = 0 or r.expires_at > %s)", nanos(rq.Now))
	if rq.Projected {
		q.where = append(q.where, "r.projected")
	}
	return q
}

func (s *Store) Similar(ctx context.Context, workspace string, w protocol.Wire, sc protocol.Scope, typ, key string, now time.Time) ([]protocol.Record, error) {
	if w != protocol.MemorySync {
		return nil, nil
	}
	return list(ctx, s, scanRecord, `select `+recordColumns+` from records r where r.workspace = $1 and r.wire = 'memorysync' and not r.forgotten
		and r.end_user = $2 and r.type = $3 and r.key = $4 and r.tenant = $5 and r.project = $6 and r.user_id = $7 and r.agent_id = $8 and r.run_id = $9
		and (r.expires_at = 0 or r.expires_at > $10) order by r.seq`,
		workspace, digest(sc.EndUser), digest(typ), digest(key), digest(sc.Tenant), digest(sc.Project), digest(sc.UserID), digest(sc.AgentID), digest(sc.RunID), nanos(now))
}

// PutRecord replaces a record under the same id and owner.
func (s *Store) PutRecord(ctx context.Context, now protocol.Record) error {
	return judged(s.transact(ctx, func(ctx context.Context, t *tx) error {
		have := map[string]protocol.Record{}
		if err := t.round(ctx, func(b *pgx.Batch) { queueRecordLocks(b, []string{now.ID}, have) }); err != nil {
			return err
		}
		old, ok := have[now.ID]
		switch {
		case !ok || old.Forgotten || old.Workspace != now.Workspace:
			return protocol.ErrNotFound
		case !sameOwner(&old, &now):
			return broken("record %s changes whose it is", now.ID)
		}
		return s.commit(ctx, t, &changes{books: newBooks(), edited: []protocol.Record{now}})
	}))
}

func sameOwner(r, now *protocol.Record) bool {
	return r.Number == now.Number && r.Wire == now.Wire && r.TaskID == now.TaskID && r.Scope == now.Scope && r.CreatedAt.Equal(now.CreatedAt)
}

// queueRecordLocks locks records and reads them.
func queueRecordLocks(b *pgx.Batch, ids []string, into map[string]protocol.Record) {
	if len(ids) == 0 {
		return
	}
	b.Queue(`select `+recordColumns+` from records r where r.id = any($1::text[]) order by r.id for update`, ids).Query(func(rows pgx.Rows) error {
		return each(rows, func(row pgx.CollectableRow) error {
			r, err := scanRecord(row)
			into[r.ID] = r
			return err
		})
	})
}

// Snapshot reads everything in one transaction that sees one moment.
func (s *Store) Snapshot(ctx context.Context) (protocol.Snapshot, error) {
	var out protocol.Snapshot
	err := s.again(ctx, func() error {
		out = protocol.Snapshot{Identities: map[protocol.Hash]string{}}
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(t pgx.Tx) error {
			return errors.Join(
				gather(ctx, t, &out.Workspaces, scanWorkspace, `select doc from workspaces order by id`),
				gather(ctx, t, &out.Tasks, oneTask, `select `+taskColumns+` from tasks t order by t.workspace, t.created_at, t.id`),
				gather(ctx, t, &out.Records, scanRecord, `select `+recordColumns+` from records r order by r.created_at, r.number, r.id`),
				gather(ctx, t, &out.Entries, scanEntry, `select `+entryColumns+` from entries order by workspace, seq`),
				gather(ctx, t, &out.Balances, scanBalance, `select `+balanceColumns+` from balances where opened order by workspace, unit, period`),
				gather(ctx, t, &out.Transitions, scanTransition, `select `+transitionColumns+` from transitions order by workspace, position`),
				identities(ctx, t, out.Identities),
			)
		})
	})
	return out, judged(err)
}

func gather[T any](ctx context.Context, t pgx.Tx, into *[]T, scan func(pgx.CollectableRow) (T, error), sql string) error {
	rows, err := t.Query(ctx, sql)
	if err != nil {
		return err
	}
	return each(rows, func(r pgx.CollectableRow) error {
		x, err := scan(r)
		*into = append(*into, x)
		return err
	})
}

func identities(ctx context.Context, t pgx.Tx, into map[protocol.Hash]string) error {
	rows, err := t.Query(ctx, `select hash, task_id from identities`)
	if err != nil {
		return err
	}
	return each(rows, func(r pgx.CollectableRow) error {
		var h []byte
		var id string
		err := r.Scan(&h, &id)
		into[protocol.Hash(h)] = id
		return err
	})
}
