package wakeup_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

// ear is what one node has heard.
type ear struct {
	mu    sync.Mutex
	heard []string
	news  chan struct{}
}

func listen(t *testing.T, b *wakeup.Bus) *ear {
	e := &ear{news: make(chan struct{}, 1)}
	t.Cleanup(b.Listen(func(id string) {
		e.mu.Lock()
		e.heard = append(e.heard, id)
		e.mu.Unlock()
		select {
		case e.news <- struct{}{}:
		default:
		}
	}))
	return e
}

func (e *ear) count(id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(e.heard), func(h string) bool { return h != id }))
}

// until waits for more than n of an id.
func (e *ear) until(t *testing.T, id string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for e.count(id) <= n {
		select {
		case <-e.news:
		case <-ctx.Done():
			t.Fatalf("%q was not heard", id)
		}
	}
}

func bus(t *testing.T, b wakeup.Broker, err error) *wakeup.Bus {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out := wakeup.New(sched.Real(), b, nil)
	t.Cleanup(out.Close)
	return out
}

// across holds a broker against what a bus promises. interrupt, which may be
// nil, takes every connection away for a moment.
func across(t *testing.T, broker func() (wakeup.Broker, error), interrupt func()) {
	makeBus := func() *wakeup.Bus { b, err := broker(); return bus(t, b, err) }
	one, two := makeBus(), makeBus()
	first, second := listen(t, one), listen(t, two)
	reach(t, one, second, "task_a")
	reach(t, two, first, "task_b")
	if first.count("task_a") != 0 || second.count("task_b") != 0 {
		t.Error("a node hears itself")
	}
	if interrupt == nil {
		return
	}
	before, beside := first.count(wakeup.Any), second.count(wakeup.Any)
	interrupt()
	one.Announce("lost, perhaps")
	first.until(t, wakeup.Any, before) // subscribed again, and a look for what was missed
	second.until(t, wakeup.Any, beside)
	reach(t, one, second, "task_c") // the sender comes back in its own time
}

// reach announces until it is heard.
func reach(t *testing.T, from *wakeup.Bus, to *ear, id string) {
	t.Helper()
	for i := 0; to.count(id) == 0; i++ {
		from.Announce(id)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		select {
		case <-to.news:
		case <-ctx.Done():
		}
		cancel()
		if i > 1500 {
			t.Fatal("wake-ups do not come through")
		}
	}
}

func TestInProcess(t *testing.T) {
	t.Parallel()
	var hub wakeup.Hub
	across(t, func() (wakeup.Broker, error) { return hub.Node(), nil }, nil)
}

// The connections of the listeners are killed: they subscribe again and look.
func TestB29_AKilledListenerSubscribesAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t) + "&application_name=memwrite_wakeup_test"
	db, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	across(t, func() (wakeup.Broker, error) { return wakeup.Postgres(url) }, func() {
		if _, err := db.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'memwrite_wakeup_test'`); err != nil {
			t.Error(err)
		}
	})
}

// The database is restarted as after a crash.
func TestB27_ARestartedDatabaseIsListenedToAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t)
	across(t, func() (wakeup.Broker, error) { return wakeup.Postgres(db.URL()) }, func() {
		if err := db.Crash(); err != nil {
			t.Error(err)
		}
	})
}

// Nodes of another schema share the database and hear nothing.
func TestSchemasAreApart(t *testing.T) {
	t.Parallel()
	ours, theirs := pgtest.URL(t), pgtest.URL(t)
	a, aerr := wakeup.Postgres(ours)
	b, berr := wakeup.Postgres(theirs)
	one, other := bus(t, a, aerr), bus(t, b, berr)
	here, there := listen(t, one), listen(t, other)
	c, cerr := wakeup.Postgres(ours)
	d, derr := wakeup.Postgres(theirs)
	reach(t, bus(t, c, cerr), here, "ours")
	reach(t, bus(t, d, derr), there, "theirs")
	if here.count("theirs")+there.count("ours") != 0 {
		t.Error("heard across schemas")
	}
}

func natsServer(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server does not come up")
	}
	return s
}

func TestNATS(t *testing.T) {
	t.Parallel()
	s := natsServer(t, server.RANDOM_PORT)
	defer func() { s.Shutdown() }()
	url, port := s.ClientURL(), s.Addr().(*net.TCPAddr).Port
	across(t, func() (wakeup.Broker, error) { return wakeup.NATS(url, "memwrite.wakeups") }, func() {
		s.Shutdown()
		s.WaitForShutdown()
		s = natsServer(t, port)
	})
}

// The server of the standard port, where one runs.
func TestNATSOfThisMachine(t *testing.T) {
	t.Parallel()
	c, err := net.DialTimeout("tcp", "127.0.0.1:4222", time.Second)
	if err != nil {
		t.Skip("nothing listens on 4222; the embedded server is tested instead")
	}
	_ = c.Close()
	across(t, func() (wakeup.Broker, error) {
		return wakeup.NATS("nats://127.0.0.1:4222", "memwrite.test."+t.Name())
	}, nil)
}

// A broker that is away: announcing costs nobody anything, and the connection
// is not tried without a pause.
func TestABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	b, err := wakeup.Postgres("postgres://u:hunter2@127.0.0.1:1/db")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	failures := 0
	first := make(chan struct{})
	away := wakeup.New(sched.Real(), b, func(error) {
		mu.Lock()
		defer mu.Unlock()
		if failures++; failures == 1 {
			close(first)
		}
	})
	began := time.Now()
	for range 100_000 {
		away.Announce("task")
	}
	<-first
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	away.Close()
	mu.Lock()
	defer mu.Unlock()
	if most := 10 + int(time.Since(began)/(50*time.Millisecond)); failures == 0 || failures > most {
		t.Errorf("%d tries", failures)
	}
}
