package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// clockNow is the database's time in the form times are stored in. now() would
// be the start of the transaction.
const clockNow = `(extract(epoch from clock_timestamp()) * 1000000000)::bigint`

const (
	// readEvery is how often a node reads the database's clock.
	readEvery = 10 * time.Second
	// readMost is how long a reading may take to count: the time it shows is
	// wrong by up to half of it.
	readMost = time.Second
)

// Clock is the database's clock as a node knows it: nodes whose own clocks
// differ agree about when a lease ends, a back-off is over or a month begins.
// Between readings it counts on by the node's own, by the monotonic reading where
// there is one, so that a node's clock may be set while it runs. A node that has
// counted wrong, such as one that was suspended, is corrected by the next reading
// and claims nothing meanwhile that the database does not call due.
type Clock struct {
	sched.Scheduler

	pool  *pgxpool.Pool
	stop  context.CancelFunc
	ended chan struct{}
	mu    sync.Mutex
	read  time.Time // of the node's clock,
	shown time.Time // when the database's was this
}

// newClock reads the clock once and then from time to time.
func newClock(ctx context.Context, pool *pgxpool.Pool, base sched.Scheduler) (*Clock, error) {
	c := &Clock{Scheduler: base, pool: pool, ended: make(chan struct{})}
	if err := c.look(ctx); err != nil {
		return nil, err
	}
	ctx, c.stop = context.WithCancel(context.Background())
	base.Go(func() {
		defer close(c.ended)
		for sched.Sleep(ctx, base, readEvery) == nil {
			_ = c.look(ctx) // the next reading may succeed; until then the last one counts
		}
	})
	return c, nil
}

// Now is the database's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.Add(c.Scheduler.Now().Sub(c.read))
}

func (c *Clock) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var n int64
		var sent, came time.Time
		err := c.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
			sent = c.Scheduler.Now()
			err := conn.QueryRow(ctx, `select `+clockNow).Scan(&n)
			came = c.Scheduler.Now()
			return err
		})
		if err != nil {
			return err
		}
		if took := came.Sub(sent); took < readMost {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.read, c.shown = sent.Add(took/2), moment(n)
			return nil
		}
	}
}

func (c *Clock) close() {
	c.stop()
	<-c.ended
}
