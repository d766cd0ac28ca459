package wakeup

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

// core is NATS without a stream: fan-out to whoever is connected.
type core struct {
	url, subject string
	opts         []nats.Option
	conn         *nats.Conn
	back         chan struct{} // one buffered signal: the connection is there (again)
}

// NATS is a broker on a NATS server. Nodes that share a database use the same
// subject; it needs no JetStream. url may hold credentials.
func NATS(url, subject string, opts ...nats.Option) (Broker, error) {
	c := &core{url: url, subject: subject, back: make(chan struct{}, 1)}
	signal := func(*nats.Conn) {
		select {
		case c.back <- struct{}{}:
		default:
		}
	}
	c.opts = append(append([]nats.Option{}, opts...), nats.Name("memwrite"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), // what cannot be sent now is not worth sending later
		nats.ConnectHandler(signal), nats.ReconnectHandler(signal))
	var err error
	if c.conn, err = nats.Connect(url, c.opts...); err != nil {
		return nil, errors.New("wakeup: the NATS URL cannot be used: it has the form nats://user:password@host:4222")
	}
	return c, nil
}

func (c *core) Send(ctx context.Context, messages []string) error {
	for _, m := range messages {
		if err := c.conn.Publish(c.subject, []byte(m)); err != nil {
			return err
		}
	}
	return nil
}

// Receive keeps one subscription, which the client renews itself when the
// server comes back.
func (c *core) Receive(ctx context.Context, ready func(), f func(string)) error {
	sub, err := c.conn.Subscribe(c.subject, func(m *nats.Msg) { f(string(m.Data)) })
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	// The server knows of it before anybody is told that it began; one that is
	// away tells later.
	_ = c.conn.FlushTimeout(5 * time.Second)
	ready()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.back:
			ready()
		}
	}
}

func (c *core) Close() { c.conn.Close() }
