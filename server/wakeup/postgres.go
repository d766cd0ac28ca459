package wakeup

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what nodes listen on; the schema keeps apart those that share a
// database.
const channel = `'memwrite_' || current_schema()`

// alive is how often a listener that hears nothing asks whether its connection
// is still there: one that is half open would be silent for ever.
const alive = 15 * time.Second

// notify is PostgreSQL's LISTEN and NOTIFY, each on a connection of its own. A
// notification is sent in a transaction of its own too: NOTIFY takes a lock of
// the whole database at the commit, which writes must not queue for.
//
// A pooler in transaction mode swallows notifications; give the database's own
// address, or use another broker, or live with the repair interval.
type notify struct {
	config *pgx.ConnConfig
	sender *pgx.Conn
	alive  time.Duration
}

// Postgres is a broker on the database that keeps the tasks.
func Postgres(url string) (Broker, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("wakeup: the database URL cannot be read: it has the form postgres://user:password@host:5432/database")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	return &notify{config: cfg, alive: alive}, nil
}

func (n *notify) Send(ctx context.Context, messages []string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, n.alive)
	defer cancel()
	if n.sender == nil {
		if n.sender, err = pgx.ConnectConfig(ctx, n.config); err != nil {
			return err
		}
	}
	if _, err = n.sender.Exec(ctx, `select pg_notify(`+channel+`, m) from unnest($1::text[]) m`, messages); err != nil {
		n.Close()
	}
	return err
}

func (n *notify) Receive(ctx context.Context, ready func(), f func(string)) error {
	conn, err := pgx.ConnectConfig(ctx, n.config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var name string
	if err := conn.QueryRow(ctx, `select `+channel).Scan(&name); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `listen `+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		wait, cancel := context.WithTimeout(ctx, n.alive)
		got, err := conn.WaitForNotification(wait)
		cancel()
		switch {
		case err == nil:
			f(got.Payload)
		case ctx.Err() != nil:
			return nil
		case wait.Err() != nil && !conn.IsClosed():
			if err := n.ping(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func (n *notify) ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, n.alive)
	defer cancel()
	return conn.Ping(ctx)
}

func (n *notify) Close() {
	if n.sender != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.sender.Close(ctx)
		n.sender = nil
	}
}
