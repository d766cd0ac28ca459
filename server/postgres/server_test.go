package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/postgres"
)

func TestNodesThatStartTogetherMigrateOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	together(3, func(int) {
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 2, FirstNumber: 66438})
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		if n, err := s.Allot(t.Context(), 2); err != nil || n < 66438 {
			t.Errorf("the first number is %d, %v", n, err)
		}
	})
	var made, versions int
	must(t, session(t, url).QueryRow(t.Context(), `select count(*), count(distinct version_id) from memwrite_migrations where version_id > 0`).Scan(&made, &versions))
	if made == 0 || made != versions {
		t.Errorf("%d migrations were made of %d versions", made, versions)
	}
}

func TestANewerSchemaIsNotTouched(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	open(t, url)
	pgtest.Exec(t, url, `insert into memwrite_migrations (version_id, is_applied) values (99, true)`)
	_, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err == nil || !strings.Contains(err.Error(), "newer memwrite") {
		t.Errorf("got %v", err)
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u:hunter2@127.0.0.1:1/db", "postgres://u:hunter2@[::1/db", "host=127.0.0.1 port=1 password=hunter2 user"} {
		_, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

// A row that breaks the protocol cannot be written by hand either.
func TestTheDatabaseRefusesBrokenRows(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	w := space("w", 10)
	must(t, s.PutWorkspace(t.Context(), w))
	accept(t, s, w, "a")
	accept(t, s, w, "b")
	claim(t, s, 1, "t1", noon)
	db := session(t, url)
	for _, sql := range []string{
		`update tasks set due_at = null where state = 'RUNNING'`, // a lease without an end
		`update tasks set lease_token = '' where state = 'RUNNING'`,
		`update tasks set state = 'RUNNING' where state = 'PENDING'`,
		`update tasks set state = 'SUCCEEDED'`,
		`update tasks set attempts = max_attempts + 1`,
		`update balances set available = -1, granted = reserved - 1`,
		`update balances set spent = spent + 1`,
		`insert into identities select hash, 'another' from identities`,
		`insert into transitions select workspace, position + 100 * n, id, task_id, number, run, attempt, from_state, 'FAILED', class, code, at from transitions, generate_series(1, 2) n`,
	} {
		if _, err := db.Exec(t.Context(), sql); err == nil {
			t.Errorf("written: %s", sql)
		}
	}
	check(t, s)
}

// The writer waits for the disk, whatever the database's own setting says, and
// leaves nothing behind in its session.
func TestEveryWriteWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db := session(t, url)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url + "&synchronous_commit=off", Connections: 1, CallerClock: true})
	must(t, err)
	defer s.Close()
	_, err = db.Exec(t.Context(), `create table seen (setting text, lock text);
		create function note() returns trigger language plpgsql as 'begin insert into seen values (current_setting(''synchronous_commit''), current_setting(''lock_timeout'')); return new; end';
		create trigger note before insert or update on tasks for each row execute function note()`)
	must(t, err)
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	accept(t, s, w, "a")
	task := claim(t, s, 1, "t1", noon)[0]
	_, err = s.Apply(t.Context(), protocol.Extend(task, time.Minute, noon))
	must(t, err)
	var writes, synced, bounded int
	must(t, db.QueryRow(t.Context(), `select count(*), count(*) filter (where setting = 'on'), count(*) filter (where lock <> '0') from seen`).Scan(&writes, &synced, &bounded))
	if writes != 3 || synced != 3 || bounded != 3 {
		t.Errorf("%d writes, %d waited for the disk, %d had a bound", writes, synced, bounded)
	}
}

// No statement is prepared under a name and nothing is left in a session: what a
// pooler in transaction mode needs.
func TestASessionKeepsNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, err := postgres.Open(t.Context(), postgres.Options{URL: url + "&application_name=memwrite_session_test", Connections: 1, CallerClock: true})
	must(t, err)
	defer s.Close()
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	for i := range 20 {
		accept(t, s, w, name("k%d", i))
	}
	db := session(t, url)
	// A session that is swept between transactions, as a pooler does it, goes
	// on: DISCARD ALL would drop what was prepared, set, listened to or locked.
	_, err = db.Exec(t.Context(), `create function sweep() returns trigger language plpgsql as 'begin
			if exists (select 1 from pg_prepared_statements where name <> '''') then raise exception ''a prepared statement''; end if;
			return new; end';
		create trigger sweep before insert on tasks for each row execute function sweep()`)
	must(t, err)
	accept(t, s, w, "last")
	var locks int
	must(t, db.QueryRow(t.Context(), `select count(*) from pg_locks l join pg_stat_activity a using (pid) where a.application_name = 'memwrite_session_test' and l.locktype = 'advisory'`).Scan(&locks))
	if locks != 0 {
		t.Errorf("%d locks of the session", locks)
	}
}

// A peer that stands still in a transaction holds the others for a bounded time.
func TestALockThatIsHeldIsWaitedForAndNotForEver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	accept(t, s, w, "a")
	conn, err := session(t, url).Acquire(t.Context())
	must(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `begin; select 1 from balances for update`)
	must(t, err)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := s.Accept(short, proposal(w, "b", infer("b", "x"), noon)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	_, err = conn.Exec(t.Context(), `rollback`)
	must(t, err)
	got, _, err := s.Accept(t.Context(), proposal(w, "c", infer("b", "x"), noon))
	must(t, err)
	if got.ID != "b" && got.ID != "c" {
		t.Errorf("the key belongs to %s", got.ID)
	}
	check(t, s)
}
