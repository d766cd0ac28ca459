package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// swallowing is a connection whose other side may be gone without a word.
type swallowing struct {
	net.Conn
	gone *atomic.Bool
}

func (c swallowing) Write(b []byte) (int, error) {
	if c.gone.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// pipes is a listener whose connections are in memory, so that a bubble's clock
// moves while both sides wait.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// All calls share one HTTP/2 connection, so that one which is dead without a
// word would take every try of every call with it.
func TestADeadHTTP2ConnectionCostsOneTry(t *testing.T) {
	t.Parallel()
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	config := cert.TLS.Clone()
	pool := cert.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	cert.Close()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("spoke %s", r.Proto)
			}
		})}
		config.NextProtos = []string{"h2"}
		go srv.Serve(tls.NewListener(l, config))
		base, _ := url.Parse("https://example.com")
		c, err := New(Config{BaseURL: base, Classify: byStatus})
		if err != nil {
			t.Fatal(err)
		}
		var gone atomic.Bool
		dials := 0
		c.owned.TLSClientConfig = &tls.Config{RootCAs: pool}
		c.owned.Proxy = nil
		c.owned.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			l.conns <- far
			dials++
			if dials == 1 {
				return swallowing{near, &gone}, nil
			}
			return near, nil
		}
		call := Call{Op: "write", Method: http.MethodPost, URL: base, Body: []byte("x"), Safe: true}
		if _, err := c.Do(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		gone.Store(true)
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if res, err := c.Do(t.Context(), call); err != nil || res.Tries > 2 {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
		calls.Wait()
		if dials != 2 {
			t.Errorf("%d connections", dials)
		}
		c.Close()
		srv.Close()
		l.Close()
		time.Sleep(time.Minute)
	})
}
