package wakeup_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/server/internal/pgtest"
	"github.com/memwrite/memwrite-go/server/wakeup"
)

// proxy stands between a node and the database. One that is dark keeps its
// connections open and passes nothing on; new ones work.
type proxy struct {
	net.Listener
	target string

	mu    sync.Mutex
	links []*link
}

type link struct {
	mu   sync.Mutex
	dark bool
}

func (l *link) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dark
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, target: target}
	go p.serve()
	t.Cleanup(func() { l.Close() })
	return p
}

func (p *proxy) serve() {
	for {
		in, err := p.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		l := &link{}
		p.mu.Lock()
		p.links = append(p.links, l)
		p.mu.Unlock()
		pass := func(to, from net.Conn) {
			defer to.Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := from.Read(buf)
				if err != nil {
					return
				}
				if l.passes() {
					if _, err := to.Write(buf[:n]); err != nil {
						return
					}
				}
			}
		}
		go pass(in, out)
		go pass(out, in)
	}
}

// darken silences every connection there is.
func (p *proxy) darken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.mu.Lock()
		l.dark = true
		l.mu.Unlock()
	}
}

// A connection that is open and silent for ever is found out, and a listener
// that hears nothing does not spin.
func TestB30_ASilentConnectionIsFoundOut(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u.Host)
	u.Host = p.Addr().String()
	a, err := wakeup.Postgres(direct)
	sender := bus(t, a, err)
	b, err := wakeup.Postgres(u.String())
	if err != nil {
		t.Fatal(err)
	}
	receiver := bus(t, wakeup.AskAfter(b, 200*time.Millisecond), nil)
	heard := listen(t, receiver)
	reach(t, sender, heard, "before")
	looks := heard.count(wakeup.Any)
	p.darken()
	heard.until(t, wakeup.Any, looks) // subscribed anew, over another connection
	reach(t, sender, heard, "after")
	if n := heard.count(wakeup.Any); n > looks+20 {
		t.Errorf("subscribed %d times", n)
	}
}
