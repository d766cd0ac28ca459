package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// ErrNoVectors says that a database has no pgvector, or does not let this role
// switch it on.
var ErrNoVectors = errors.New("postgres: the database has no pgvector")

// vectorTable has the vectors of one embedding: those of another are not
// comparable. Null is a text without any meaning, which is near to nothing.
var vectorTable = fmt.Sprintf("record_vectors_%d", extract.EmbedVersion)

// Vectors is a protocol.Projector and a protocol.Searcher for all nodes of a
// database, in a table beside the records. A record that has no vector there is
// compared by its text, so that a search answers the same however much is
// there; one that is forgotten loses its vector in the same transaction.
type Vectors struct {
	s      *Store
	schema string // of the extension, quoted
	ended  chan struct{}
	stop   context.CancelFunc
}

var (
	_ protocol.Projector = (*Vectors)(nil)
	_ protocol.Searcher  = (*Vectors)(nil)
)

// Vectors switches pgvector on in the database, makes the table when it is not
// there, and goes on to give records without a vector theirs, of which failed is
// told if it fails. Errors: ErrNoVectors, or the database's.
func (s *Store) Vectors(ctx context.Context, failed func(error)) (*Vectors, error) {
	v, err := s.openVectors(ctx)
	if err != nil {
		return nil, err
	}
	fill, stop := context.WithCancel(context.WithoutCancel(ctx))
	v.stop, v.ended = stop, make(chan struct{})
	s.sched.Go(func() {
		defer close(v.ended)
		if err := v.fill(fill); err != nil && fill.Err() == nil {
			failed(err)
		}
	})
	return v, nil
}

func (s *Store) openVectors(ctx context.Context) (*Vectors, error) {
	schema, err := s.vectorExtension(ctx)
	if err != nil {
		return nil, err
	}
	v := &Vectors{s: s, schema: pgx.Identifier{schema}.Sanitize()}
	err = s.once(ctx, vectorTable,
		fmt.Sprintf(`create table %s (id text collate "C" primary key, embedding %s)`, vectorTable, v.typ()),
		fmt.Sprintf(`create function %s_forget() returns trigger language plpgsql as $$ begin delete from %[1]s where id = new.id; return null; end $$`, vectorTable),
		fmt.Sprintf(`create trigger %s after update of forgotten on records for each row when (new.forgotten and not old.forgotten) execute function %[1]s_forget()`, vectorTable))
	return v, judged(err)
}

// vectorExtension is the schema the extension is in, which need not be on the
// path.
func (s *Store) vectorExtension(ctx context.Context) (string, error) {
	const where = `select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`
	schema, err := one(ctx, s, scanInto[string], where)
	if !errors.Is(err, protocol.ErrNotFound) {
		return schema, err
	}
	_, err = one(ctx, s, scanInto[int], `select 1 from pg_available_extensions where name = 'vector'`)
	if errors.Is(err, protocol.ErrNotFound) {
		return "", ErrNoVectors
	}
	if err != nil {
		return "", err
	}
	_, err = s.pool.Exec(ctx, `create extension if not exists vector with schema public`)
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "42501" {
		return "", fmt.Errorf("%w: it is there, and this role may not switch it on: let the owner of the database run CREATE EXTENSION vector", ErrNoVectors)
	}
	// Another node may have made it at the same moment.
	if schema, there := one(ctx, s, scanInto[string], where); there == nil {
		return schema, nil
	}
	return "", judged(err)
}

func (v *Vectors) typ() string { return fmt.Sprintf("%s.vector(%d)", v.schema, extract.Dimensions) }

// Close ends what still gives records their vectors. A second call does nothing.
func (v *Vectors) Close() {
	if v.stop != nil {
		v.stop()
		<-v.ended
	}
}

// Project gives records vectors that have none yet, and takes those of forgotten
// ones away.
func (v *Vectors) Project(ctx context.Context, rs []protocol.Record) error {
	var live []protocol.Record
	var gone []string
	for i := range rs {
		if rs[i].Forgotten {
			gone = append(gone, rs[i].ID)
		} else {
			live = append(live, rs[i])
		}
	}
	if len(live) > 0 {
		if err := v.put(ctx, live, "do nothing"); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return v.exec(ctx, `delete from `+vectorTable+` where id = any($1::text[])`, gone)
}

// put holds the records so that none is forgotten before its vector is there to
// be taken away.
func (v *Vectors) put(ctx context.Context, rs []protocol.Record, again string) error {
	ids, vectors := make([]string, len(rs)), make([]*string, len(rs))
	for i := range rs {
		ids[i] = rs[i].ID
		if e := extract.Embed(rs[i].Text); extract.Score(e, e) > 0 {
			text := literal(e)
			vectors[i] = &text
		}
	}
	return v.exec(ctx, `insert into `+vectorTable+` (id, embedding)
		select r.id, u.v::`+v.typ()+` from unnest($1::text[], $2::text[]) as u(id, v) join records r on r.id = u.id
		where not r.forgotten order by r.id for share of r on conflict (id) `+again, ids, vectors)
}

func (v *Vectors) exec(ctx context.Context, sql string, args ...any) error {
	return judged(v.s.again(ctx, func() error {
		_, err := v.s.pool.Exec(ctx, sql, args...)
		return err
	}))
}

// literal is a vector as the extension reads it.
func literal(e []float32) string {
	b := []byte{'['}
	for i, x := range e {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return string(append(b, ']'))
}

// fill gives every live record that has none a vector.
func (v *Vectors) fill(ctx context.Context) error {
	return v.s.eachPage(ctx, v.s.clock.Now(), `and not exists (select from `+vectorTable+` v where v.id = r.id)`, func(rs []protocol.Record) error {
		return v.put(ctx, rs, "do nothing")
	})
}

// RebuildVectors makes the vectors of all live records anew and takes away what
// is left over, while nodes may be writing. It gives how many records there are,
// and none where no node has made the table.
func (s *Store) RebuildVectors(ctx context.Context) (n int, err error) {
	if made, err := one(ctx, s, scanInto[bool], `select to_regclass($1) is not null`, vectorTable); err != nil || !made {
		return 0, err
	}
	v, err := s.openVectors(ctx)
	if err != nil {
		return 0, err
	}
	now := s.clock.Now()
	err = s.eachPage(ctx, now, ``, func(rs []protocol.Record) error {
		n += len(rs)
		return v.put(ctx, rs, "do update set embedding = excluded.embedding")
	})
	if err != nil {
		return n, err
	}
	return n, v.exec(ctx, `delete from `+vectorTable+` v where not exists
		(select from records r where r.id = v.id and not r.forgotten and (r.expires_at = 0 or r.expires_at > $1))`, nanos(now))
}
