package postgres_test

import (
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// cutter stands before the database. Armed, it lets one request through, waits
// until the answer is there, and cuts the connection instead of passing it on.
type cutter struct {
	net.Listener
	armed atomic.Bool
	cuts  atomic.Int32
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{Listener: l}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			pass := func(to, from net.Conn, answers bool) {
				defer to.Close()
				defer from.Close()
				buf := make([]byte, 64<<10)
				for {
					n, err := from.Read(buf)
					if err != nil {
						return
					}
					if answers && c.armed.CompareAndSwap(true, false) {
						c.cuts.Add(1)
						return
					}
					if _, err := to.Write(buf[:n]); err != nil {
						return
					}
				}
			}
			go pass(out, in, false)
			go pass(in, out, true)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return c
}

// The answer to a commit is lost. Whether it happened is found out: the caller
// is told of the one task it made, as the first and not as its own twin.
func TestACommitWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.URL(t))
	must(t, err)
	c := newCutter(t, u.Host)
	u.Host = c.Addr().String()
	s := open(t, u.String())
	w := space("w", -1)
	must(t, s.PutWorkspace(t.Context(), w))
	accept(t, s, w, "first") // opens the account, and the connection
	for i := range 5 {
		c.armed.Store(true)
		got, twin, err := s.Accept(t.Context(), proposal(w, name("task_%d", i), infer(name("k%d", i), "x"), noon))
		must(t, err)
		if twin || got.ID != name("task_%d", i) {
			t.Errorf("twin %v of %s", twin, got.ID)
		}
	}
	// Without a name, and so without a twin that could tell.
	c.armed.Store(true)
	nameless := protocol.Command{Kind: protocol.MemorySyncAdd, Scope: protocol.Scope{Tenant: "default", EndUser: "sam"}, Text: "x"}
	_, twin, err := s.Accept(t.Context(), proposal(w, "nameless", nameless, noon))
	must(t, err)
	snap := check(t, s)
	if twin || len(snap.Tasks) != 7 || c.cuts.Load() < 6 {
		t.Errorf("twin %v, %d tasks after %d cuts", twin, len(snap.Tasks), c.cuts.Load())
	}
}
