package pgtest

import (
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// oneAtATime lets many clients use a server that has one session: each holds it
// from the first message of a transaction to the end of it. A client's
// search_path goes with it; named statements and notifications do not.
type oneAtATime struct {
	l net.Listener

	mu     sync.Mutex // held through a transaction
	server *pgproto3.Frontend
	path   string
}

func newOneAtATime(server string) (*oneAtATime, error) {
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return nil, err
	}
	o := &oneAtATime{server: pgproto3.NewFrontend(conn, conn)}
	o.server.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "postgres", "database": "postgres"}})
	if err := o.server.Flush(); err != nil {
		return nil, err
	}
	if _, err := o.until(nil); err != nil {
		return nil, err
	}
	if o.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := o.l.Accept()
			if err != nil {
				return
			}
			go o.serve(c)
		}
	}()
	return o, nil
}

// url tells clients to name no statements.
func (o *oneAtATime) url() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&default_query_exec_mode=cache_describe", o.l.Addr())
}

// until passes the server's messages on until it is ready again.
func (o *oneAtATime) until(client *pgproto3.Backend) (status byte, err error) {
	for {
		m, err := o.server.Receive()
		if err != nil {
			return 0, err
		}
		if client != nil {
			client.Send(m)
		}
		if ready, ok := m.(*pgproto3.ReadyForQuery); ok {
			if client != nil {
				err = client.Flush()
			}
			return ready.TxStatus, err
		}
	}
}

// alone runs a statement of ours.
func (o *oneAtATime) alone(sql string) error {
	o.server.Send(&pgproto3.Query{String: sql})
	if err := o.server.Flush(); err != nil {
		return err
	}
	_, err := o.until(nil)
	return err
}

func (o *oneAtATime) serve(c net.Conn) {
	defer c.Close()
	client := pgproto3.NewBackend(c, c)
	path, err := greet(c, client)
	if err != nil {
		return
	}
	held := false
	defer func() {
		if held {
			_ = o.alone("rollback")
			o.mu.Unlock()
		}
	}()
	for {
		m, err := client.Receive()
		if err != nil {
			return
		}
		if _, over := m.(*pgproto3.Terminate); over {
			return
		}
		if !held {
			o.mu.Lock()
			held = true
			if path != o.path {
				if err := o.alone("set search_path to " + path); err != nil {
					return
				}
				o.path = path
			}
		}
		o.server.Send(m)
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			if err := o.server.Flush(); err != nil {
				return
			}
			status, err := o.until(client)
			if err != nil {
				return
			}
			if status == 'I' {
				o.mu.Unlock()
				held = false
			}
		}
	}
}

// greet lets anybody in, and gives the search_path it asks for.
func greet(c net.Conn, client *pgproto3.Backend) (path string, err error) {
	for {
		m, err := client.ReceiveStartupMessage()
		if err != nil {
			return "", err
		}
		start, ok := m.(*pgproto3.StartupMessage)
		if !ok { // for TLS
			if _, err := c.Write([]byte("N")); err != nil {
				return "", err
			}
			continue
		}
		path = start.Parameters["search_path"]
		if path == "" || strings.ContainsAny(path, ";") {
			path = "public"
		}
		client.Send(&pgproto3.AuthenticationOk{})
		for name, value := range map[string]string{"server_version": "18.0", "client_encoding": "UTF8", "standard_conforming_strings": "on", "integer_datetimes": "on"} {
			client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
		}
		client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 0}})
		client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		return path, client.Flush()
	}
}
