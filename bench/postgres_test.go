package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/memwrite/memwrite-go/server/storebench"
)

// connections is how many each side may hold: River does not get faster by
// more on this server.
const connections = 32

// riverWorkers and ourRunners let our side hold no more tasks at once, claimed and
// not ended, than River holds jobs: the figures say how many. A worker of River's
// is free again before what it did is committed; 200 of them hold 300 to 1200 jobs
// on the average. A runner of ours is free when its task has ended, and waits for
// a claim before: 1800 of them hold some 900 tasks.
const (
	riverWorkers = 200
	ourRunners   = 1800
)

func onPostgres(t *testing.T) *storebench.Bench { return onDatabase(t, storebench.Database(t)) }

func onDatabase(t *testing.T, url string) *storebench.Bench {
	t.Helper()
	s, err := storebench.Postgres(t.Context(), url, 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b, err := storebench.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// jobs is River on a schema of its own.
type jobs struct {
	*testing.T
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	last   atomic.Int64
}

type noteWorker struct {
	river.WorkerDefaults[noteArgs]
	all sync.WaitGroup
}

func (w *noteWorker) Work(context.Context, *river.Job[noteArgs]) error { w.all.Done(); return nil }

func newRiver(t *testing.T) *jobs {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(storebench.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &jobs{T: t, pool: pool, client: client}
}

func (j *jobs) args() noteArgs {
	i := j.last.Add(1)
	return noteArgs{fmt.Sprint("user-", i%1000), fmt.Sprint("note-", i), storebench.Text}
}

func (j *jobs) inserts(callers, n int) error {
	return storebench.Together(callers, n, func() error {
		_, err := j.client.Insert(j.Context(), j.args(), nil)
		return err
	})
}

func (j *jobs) insertMany(n int) error {
	for ; n > 0; n -= 500 {
		params := make([]river.InsertManyParams, min(n, 500))
		for i := range params {
			params[i].Args = j.args()
		}
		if _, err := j.client.InsertManyFast(j.Context(), params); err != nil {
			return err
		}
	}
	return nil
}

// work lets a client work off what is there and gives the time of n jobs.
func (j *jobs) work(n int) error {
	w := &noteWorker{}
	w.all.Add(n)
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(riverpgxv5.New(j.pool), &river.Config{
		Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverWorkers}},
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 10 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	if err := client.Start(j.Context()); err != nil {
		return err
	}
	w.all.Wait()
	return client.Stop(j.Context())
}

// holds works while it looks how many rows query counts, and gives the mean. That
// takes time of what it looks at: it is for no measured round.
func holds(t *testing.T, pool *pgxpool.Pool, query string, work func() error) float64 {
	t.Helper()
	looks, sum := 0, 0
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			var n int
			if pool.QueryRow(t.Context(), query).Scan(&n) == nil && n > 0 {
				looks, sum = looks+1, sum+n
			}
		}
	}()
	err := work()
	close(done)
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	return float64(sum) / float64(max(looks, 1))
}

func (j *jobs) count(state string) (n int) {
	j.Helper()
	if err := j.pool.QueryRow(j.Context(), `select count(*) from river_job where state = $1`, state).Scan(&n); err != nil {
		j.Fatal(err)
	}
	return n
}

// tidy does what autovacuum does where it is on: what a round made of rows before
// it is measured weighs on no side.
func tidy(t *testing.T, pool *pgxpool.Pool) error {
	t.Helper()
	rows, err := pool.Query(t.Context(), `select format('vacuum analyze %I', tablename) from pg_tables where schemaname = current_schema()`)
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, one := range all {
		_, failed := pool.Exec(t.Context(), one)
		err = errors.Join(err, failed)
	}
	return err
}

// pgbench is the classic of it: a simple update, prepared, from so many clients.
type pgbench struct {
	*testing.T
	bin, url string
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func newPgbench(t *testing.T) *pgbench {
	t.Helper()
	bin, err := exec.LookPath("pgbench")
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
		if len(found) == 0 {
			t.Fatal("pgbench is not installed; it comes with the server's package")
		}
		sort.Strings(found)
		bin = found[len(found)-1]
	}
	p := &pgbench{t, bin, storebench.Database(t)}
	p.run("-i", "-q", "-s", "20")
	return p
}

func (p *pgbench) run(args ...string) string {
	p.Helper()
	u, err := pgx.ParseConfig(p.url)
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), p.bin, append(args, u.Database)...)
	cmd.Env = append(cmd.Environ(), "PGHOST="+u.Host, fmt.Sprintf("PGPORT=%d", u.Port), "PGUSER="+u.User, "PGPASSWORD="+u.Password,
		"PGOPTIONS=-c search_path="+u.RuntimeParams["search_path"])
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("pgbench: %v\n%s", err, out)
	}
	return string(out)
}

// rate is transactions a second.
func (p *pgbench) rate() float64 {
	p.Helper()
	m := tps.FindStringSubmatch(p.run("-n", "-N", "-M", "prepared", "-c", "16", "-j", "2", "-T", "3"))
	if m == nil {
		p.Fatal("pgbench says no rate")
	}
	f, _ := strconv.ParseFloat(m[1], 64)
	return f
}

func TestPostgresAcceptFigures(t *testing.T) { // not parallel: it measures time
	ctx := t.Context()
	ours16, ours64, river16, river64, simple := onPostgres(t), onPostgres(t), newRiver(t), newRiver(t), newPgbench(t)
	most := 0.0
	best, err := storebench.Best(*rounds,
		storebench.Side{N: 6000, Do: func(n int) error { return ours16.Accepts(ctx, 16, n) }},
		storebench.Side{N: 2000, Do: func(n int) error { return river16.inserts(16, n) }},
		storebench.Side{N: 10000, Do: func(n int) error { return ours64.Accepts(ctx, 64, n) }},
		storebench.Side{N: 2000, Do: func(n int) error { return river64.inserts(64, n) }},
		storebench.Side{N: 1, Do: func(int) error { most = max(most, simple.rate()); return nil }},
		storebench.Side{N: 10000, Do: func(n int) error { return river16.insertMany(n) }},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*storebench.Bench{ours16, ours64} {
		if err := b.Count(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, j := range []*jobs{river16, river64} {
		if n := j.count("available"); n != int(j.last.Load()) {
			t.Fatalf("River has %d jobs of %d", n, j.last.Load())
		}
	}
	rate := func(i int) float64 { return float64(time.Second) / float64(best[i]) }
	storebench.Figure("postgres.accept16_vs_river", rate(0)/rate(1), ">=", 2, " # 16 callers on each side")
	storebench.Figure("postgres.accept64_vs_river", rate(2)/rate(3), ">=", 2, " # 64 callers on each side")
	storebench.Figure("postgres.accept16_vs_pgbench", rate(0)/most, ">=", 1, " # 16 callers against pgbench -N -M prepared with 16 clients")
	storebench.Note("postgres.accept16_per_s", rate(0), "")
	storebench.Note("postgres.accept64_per_s", rate(2), "")
	storebench.Note("postgres.river_insert16_per_s", rate(1), "")
	storebench.Note("postgres.river_insert64_per_s", rate(3), "")
	storebench.Note("postgres.pgbench_per_s", most, "")
	storebench.Note("postgres.river_insert_many_per_s", rate(5), " # 500 at a time")
}

func TestPostgresWorkFigures(t *testing.T) {
	ctx := t.Context()
	const n = 10_000
	url := storebench.Database(t)
	ours, rivers := onDatabase(t, url), newRiver(t)
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	best := [2]time.Duration{}
	if err := errors.Join(ours.Prepare(ctx, n), rivers.insertMany(n)); err != nil {
		t.Fatal(err)
	}
	// The first round warms both sides and is not measured.
	oursHolds := holds(t, pool, `select count(*) from tasks where state = 'RUNNING'`, func() error { return ours.Works(ctx, ourRunners, n) })
	riverHolds := holds(t, rivers.pool, `select count(*) from river_job where state = 'running'`, func() error { return rivers.work(n) })
	for range *rounds {
		if err := errors.Join(ours.Prepare(ctx, n), rivers.insertMany(n), tidy(t, pool), tidy(t, rivers.pool)); err != nil {
			t.Fatal(err)
		}
		got, err := storebench.Best(1,
			storebench.Side{N: n, Do: func(n int) error { return ours.Works(ctx, ourRunners, n) }},
			storebench.Side{N: n, Do: rivers.work},
		)
		if err != nil {
			t.Fatal(err)
		}
		for i := range best {
			if best[i] == 0 || got[i] < best[i] {
				best[i] = got[i]
			}
		}
	}
	if err := ours.CountWorked(ctx, n*(1+*rounds)); err != nil {
		t.Fatal(err)
	}
	if done := rivers.count("completed"); done != n*(1+*rounds) {
		t.Fatalf("River completed %d of %d", done, n*(1+*rounds))
	}
	storebench.Figure("postgres.work_vs_river", float64(best[1])/float64(best[0]), ">=", 1, " # claim and finish against fetch and complete, no more held at once than River holds")
	storebench.Note("postgres.work_held", oursHolds, " # tasks claimed and not ended, on the average")
	storebench.Note("postgres.river_work_held", riverHolds, " # jobs fetched and not completed, on the average, by 200 workers")
	storebench.Note("postgres.work_per_s", float64(time.Second)/float64(best[0]), "")
	storebench.Note("postgres.river_work_per_s", float64(time.Second)/float64(best[1]), "")

	took, waited, err := onPostgres(t).Whole(ctx, 64, 5000)
	if err != nil {
		t.Fatal(err)
	}
	storebench.Note("postgres.whole_per_s", 5000/took.Seconds(), " # accepted, claimed, extracted, planned, committed, projected and finished, 64 runners")
	_, waited, err = onPostgres(t).Whole(ctx, 16, 300)
	if err != nil {
		t.Fatal(err)
	}
	storebench.Note("postgres.accept_to_claim_p50_ms", float64(waited[len(waited)/2].Microseconds())/1000, " # 16 callers, 16 runners")
	storebench.Note("postgres.accept_to_claim_p99_ms", float64(waited[len(waited)*99/100].Microseconds())/1000, "")
}

func TestPostgresClaimFigures(t *testing.T) {
	claimFigures(t, "postgres", 512, onPostgres(t), onPostgres(t))
}
