package mockserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

// InspectorURL is the address of a page that shows what each write went
// through, the records, the ledger, the requests and the faults, live. It
// answers a browser on this machine; one elsewhere has to give the
// ControlToken as the password it is asked for.
func (s *Server) InspectorURL() string { return s.URL + inspector.Root }

func (s *Server) newInspector() *inspector.Inspector {
	return inspector.New(inspector.Config{
		Store:      func() protocol.Store { store, _ := s.core.now(); return store },
		Now:        s.clock.Now,
		Workspaces: s.core.names,
		Watch:      s.watch,
		Streams:    sched.Real(),
		Requests:   s.inspected,
		Controls:   controls{s},
		Allow:      s.mayInspect,
	})
}

// names is every workspace that was used, the server's own first.
func (c *core) names() []string {
	out := []string{c.srv.Workspace}
	for id := range *c.workspaces.Load() {
		if id != c.srv.Workspace {
			out = append(out, id)
		}
	}
	slices.Sort(out[1:])
	return out
}

// mayInspect lets a browser on this machine in, under a name of this machine,
// so that no page from elsewhere can reach it by a name of its own.
func (s *Server) mayInspect(r *http.Request) bool {
	if _, password, ok := r.BasicAuth(); ok {
		return subtle.ConstantTimeCompare([]byte(password), []byte(s.ControlToken)) == 1
	}
	return onThisMachine(r)
}

// onThisMachine says that caller and name called are both this machine.
func onThisMachine(r *http.Request) bool {
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !net.ParseIP(remote).IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return host == "localhost" || host == "memwrite.test" || net.ParseIP(host).IsLoopback()
}

// maxInspected bounds the requests the page looks at, the newest of them.
const maxInspected = 2000

// inspected is the journal as the page may see it.
func (s *Server) inspected() []inspector.Request {
	rs := s.journal.latest(maxInspected)
	out := make([]inspector.Request, len(rs))
	for n, r := range rs {
		out[n] = inspector.Request{
			Seq: r.Seq, At: r.At, Method: r.Method, Path: r.Path, Hash: s.hashOf(r),
			Status: r.Status, Fault: string(r.Fault), Dropped: r.Dropped,
		}
		out[n].Identity = service.Sent(r.Identity).Kind()
		if len(r.Body) > 0 {
			out[n].Body = sha256.Sum256(r.Body)
		}
	}
	return out
}

// hashOf is the identity of a request as its task keeps it, in the server's own
// workspace and default project; zero without one.
func (s *Server) hashOf(r Request) protocol.Hash {
	return service.Sent(r.Identity).Hash(s.Workspace, r.Header.Get("X-End-User-ID"))
}

// controls lets the page do what Go code and the control API can.
type controls struct{ s *Server }

func (c controls) Kinds() []string {
	out := make([]string, len(kinds))
	for n, k := range kinds {
		out[n] = string(k)
	}
	return out
}

func (c controls) Points() []string {
	return []string{string(BeforeInference), string(AfterInference), string(AfterPlan), string(AfterCommit), string(BeforeFinish)}
}

func (c controls) Faults() []inspector.Fault {
	var out []inspector.Fault
	for _, f := range c.s.faults.list() {
		shown := inspector.Fault{Number: f.Number, Kind: string(f.Kind), Key: f.Key, Times: f.Times, Code: f.Code,
			RetryAfter: f.RetryAfter, Delay: f.Delay, Fired: f.Fired, Over: f.Over}
		if atPoint(f.Kind) {
			shown.Point = string(f.Point)
		}
		out = append(out, shown)
	}
	return out
}

// Arm takes the form's values. It always has a point selected, which only
// faults of a runner know.
func (c controls) Arm(f inspector.Fault) error {
	if !atPoint(Kind(f.Kind)) {
		f.Point = ""
	}
	_, err := c.s.faults.arm(Fault{Kind: Kind(f.Kind), Point: Point(f.Point), Key: f.Key, Times: f.Times, Code: f.Code, RetryAfter: f.RetryAfter, Delay: f.Delay})
	return err
}

func (c controls) Disarm(n int) bool  { return c.on(n, (*Armed).Disarm) }
func (c controls) Release(n int) bool { return c.on(n, (*Armed).Release) }

func (c controls) on(n int, do func(*Armed)) bool {
	a := c.s.faults.at(n)
	if a == nil {
		return false
	}
	do(a)
	return true
}

func (c controls) DisarmAll()              { c.s.Disarm() }
func (c controls) Freeze()                 { c.s.Freeze() }
func (c controls) Thaw()                   { c.s.Thaw() }
func (c controls) Advance(d time.Duration) { c.s.Advance(d) }

func (c controls) Frozen() bool {
	_, frozen, _ := c.s.clock.view()
	return frozen
}

// atPoint says that a fault strikes at a point of an attempt.
func atPoint(k Kind) bool { return slices.Contains([]Kind{KillRunner, FreezeRunner, ExpireLease}, k) }
