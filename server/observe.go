package server

import (
	"context"
	"crypto/subtle"
	"net"
	"net/http"

	"github.com/memwrite/memwrite-go/internal/inspector"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/server/metrics"
)

// Counter is a store that counts what waits by itself. Another is asked for
// its tasks.
type Counter interface {
	// Waiting is how many tasks are in each state that is not an end.
	Waiting(ctx context.Context) (map[protocol.State]int, error)
}

// counted bounds the tasks of a state that are looked at in a store that does
// not count.
const counted = 1000

// watch is what looks at a node without being part of it.
type watch struct {
	seen      *inspector.Watch
	metrics   *metrics.Metrics
	inspector *inspector.Inspector
	requests  *inspector.Recorder
}

func newWatch(o Options) *watch {
	w := &watch{seen: inspector.NewWatch()}
	names := make([]string, len(o.Workspaces))
	for n, ws := range o.Workspaces {
		names[n] = ws.ID
	}
	w.metrics = metrics.New(metrics.Config{
		Now: o.Scheduler.Now, Streams: w.seen.Listeners,
		Backlog: func(ctx context.Context) (metrics.Backlog, error) { return backlog(ctx, o.Store, names) },
	})
	home := ""
	if len(names) > 0 {
		home = names[0]
	}
	w.requests = &inspector.Recorder{Now: o.Scheduler.Now, Identify: func(r *http.Request, body []byte) (string, protocol.Hash) {
		sent := service.SentWith(r.Header, r.URL.Path, body)
		return sent.Kind(), sent.Hash(home, r.Header.Get("X-End-User-ID"))
	}}
	w.inspector = inspector.New(inspector.Config{
		Store: func() protocol.Store { return o.Store }, Now: o.Scheduler.Now,
		Workspaces: func() []string { return names },
		Watch:      w.seen, Streams: sched.Real(), Requests: w.requests.Requests,
		Allow: func(r *http.Request) bool { return mayInspect(r, o.InspectorToken) },
	})
	return w
}

// observe passes a step on to everybody who looks.
func (w *watch) observe(s protocol.Step) {
	w.seen.Observe(s)
	w.metrics.Observe(s)
}

func backlog(ctx context.Context, store protocol.Store, workspaces []string) (metrics.Backlog, error) {
	b := metrics.Backlog{Depth: map[protocol.State]int{}}
	due, ok, err := store.NextDue(ctx)
	if err != nil {
		return b, err
	}
	if ok {
		b.Oldest = due
	}
	if c, ok := store.(Counter); ok {
		b.Depth, err = c.Waiting(ctx)
		return b, err
	}
	for _, w := range workspaces {
		for _, s := range []protocol.State{protocol.Pending, protocol.Running, protocol.Retrying} {
			ts, err := store.Tasks(ctx, protocol.TaskQuery{Workspace: w, State: s, Limit: counted})
			if err != nil {
				return b, err
			}
			b.Depth[s] += len(ts)
		}
	}
	return b, nil
}

// mayInspect lets a browser on this machine in under a name of this machine,
// and one elsewhere only with the token.
func mayInspect(r *http.Request, token string) bool {
	if _, password, ok := r.BasicAuth(); ok {
		return token != "" && subtle.ConstantTimeCompare([]byte(password), []byte(token)) == 1
	}
	return isLoopback(r.RemoteAddr) && (isLoopback(r.Host) || hostOnly(r.Host) == "localhost")
}

func isLoopback(addr string) bool { return net.ParseIP(hostOnly(addr)).IsLoopback() }

func hostOnly(addr string) string {
	if h, _, err := net.SplitHostPort(addr); err == nil {
		return h
	}
	return addr
}
