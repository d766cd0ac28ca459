package inspector

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Root is the path everything of the inspector is under.
const Root = "/_inspector/"

// Config is what an inspector shows. Store, Now, Workspaces, Watch and Streams
// are needed.
type Config struct {
	// Store is the store of this moment, Now the server's clock.
	Store func() protocol.Store
	Now   func() time.Time
	// Workspaces names the workspaces, the one to show first at the front.
	Workspaces func() []string
	// Watch is told the steps of the engine.
	Watch *Watch
	// Streams paces the live streams.
	Streams sched.Scheduler
	// Requests is the journal, oldest first; nil: the page is not offered.
	Requests func() []Request
	// Controls arms faults and moves the clock; nil: the page is not offered.
	Controls Controls
	// Allow refuses a caller; nil allows all. A request that changes something
	// must also come from a page of this server.
	Allow func(*http.Request) bool
}

// Request is one request of the journal. It holds no body, query or key.
type Request struct {
	Seq      int
	At       time.Time
	Method   string
	Path     string
	Identity string        // of what kind its identity is, "" without one
	Hash     protocol.Hash // of the identity, as a task keeps it
	Body     protocol.Hash // of the body, to tell a twin from a change
	Status   int           // 0: the service never saw it, or has not answered
	Fault    string
	Dropped  bool
}

// Inspector answers everything under Root. It is safe for concurrent use.
type Inspector struct {
	Config
	mux    *http.ServeMux
	closed context.Context
	close  context.CancelFunc
}

// Close ends the live streams, those to come as well. A second call does
// nothing.
func (i *Inspector) Close() { i.close() }

//go:embed static
var static embed.FS

// New makes an inspector.
func New(c Config) *Inspector {
	i := &Inspector{Config: c, mux: http.NewServeMux()}
	i.closed, i.close = context.WithCancel(context.Background())
	files, _ := fs.Sub(static, "static")
	i.mux.Handle("GET "+Root+"static/", http.StripPrefix(Root+"static/", http.FileServerFS(files)))
	i.mux.HandleFunc("GET "+Root+"{$}", i.writes)
	i.mux.HandleFunc("GET "+Root+"writes/{id}", i.write)
	i.mux.HandleFunc("GET "+Root+"records", i.records)
	i.mux.HandleFunc("GET "+Root+"ledger", i.ledger)
	i.mux.HandleFunc("GET "+Root+"load", i.load)
	i.mux.HandleFunc("GET "+Root+"live", i.live)
	if c.Requests != nil {
		i.mux.HandleFunc("GET "+Root+"requests", i.requests)
	}
	if c.Controls != nil {
		i.mux.HandleFunc("GET "+Root+"faults", i.faults)
		i.mux.HandleFunc("POST "+Root+"faults", i.act)
	}
	return i
}

// policy keeps a page to itself: whatever a text holds, nothing is loaded from
// or sent to anywhere else, and no inline script runs.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (i *Inspector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	// Without a referrer a browser sends the origin of a form as "null".
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if i.Allow != nil && !i.Allow(r) {
		h.Set("WWW-Authenticate", `Basic realm="memwrite inspector"`)
		http.Error(w, "The inspector answers on this machine, or with its token as the password.", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !samePage(r) {
		http.Error(w, "This has to come from a page of the inspector.", http.StatusForbidden)
		return
	}
	i.mux.ServeHTTP(w, r)
}

// samePage says that the request was made by a page this server served.
func samePage(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || origin.Host == "" || !strings.EqualFold(origin.Host, r.Host) {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// workspace is the one the request asks to see, or the first. A name that the
// server does not know is treated as none.
func (i *Inspector) workspace(r *http.Request) string {
	all := i.Workspaces()
	asked := r.URL.Query().Get("workspace")
	for _, w := range all {
		if w == asked {
			return w
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
