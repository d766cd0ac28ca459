package memwrite_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// The proxy variables and the root certificates are read once a process, and
// loopback hosts never go through a proxy. So these tests start a process of
// their own, with a client as a user would make it, and a host name that only
// the proxy knows.

const childVariable = "MEMWRITE_TEST_CHILD"

// TestChild is the process: it does nothing in a run of its own.
func TestChild(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		return
	}
	c, err := memwrite.New(memwrite.FromEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		res, err := c.Add(context.Background(), theNote())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("child:", res.Outcome, "after", res.Tries)
	}
}

// child runs TestChild with the variables and gives what it printed.
func child(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	for _, kept := range os.Environ() {
		if name, _, _ := strings.Cut(strings.ToUpper(kept), "="); !strings.HasSuffix(name, "_PROXY") {
			cmd.Env = append(cmd.Env, kept)
		}
	}
	cmd.Env = append(append(cmd.Env, childVariable+"=1", "MEMORYSYNC_API_KEY="+msKey), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// proxy passes requests on to one server, whatever host they name.
type proxy struct {
	to    string // host and port
	mu    sync.Mutex
	hosts []string
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.hosts = append(p.hosts, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		if r.URL.Host == "" {
			http.Error(w, "not for a proxy", http.StatusBadRequest)
			return
		}
		respond(w, 201, storedBody)
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, "unreachable", http.StatusBadGateway)
		return
	}
	w.WriteHeader(200)
	down, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		up.Close()
		return
	}
	go func() { io.Copy(up, down); up.Close() }()
	go func() { io.Copy(down, up); down.Close() }()
}

// encrypted is a server that speaks HTTP/2 over TLS, and a file with its root.
func encrypted(t *testing.T) (srv *httptest.Server, root string, versions *sync.Map, connections *atomic.Int64) {
	t.Helper()
	versions, connections = &sync.Map{}, &atomic.Int64{}
	srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		versions.Store(r.Proto, true)
		respond(w, 201, storedBody)
	}))
	srv.EnableHTTP2 = true
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	root = filepath.Join(t.TempDir(), "root.pem")
	if err := os.WriteFile(root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return srv, root, versions, connections
}

func TestS55_TheProxyOfTheEnvironmentIsUsed(t *testing.T) {
	t.Parallel()
	target, root, versions, _ := encrypted(t)
	for name, tc := range map[string]struct{ variable, base, host string }{
		"plain":   {"HTTP_PROXY", "http://memorysync.invalid", "POST memorysync.invalid"},
		"CONNECT": {"HTTPS_PROXY", "https://example.com", "CONNECT example.com:443"},
	} {
		p := &proxy{to: strings.TrimPrefix(target.URL, "https://")}
		srv := httptest.NewServer(p)
		t.Cleanup(srv.Close)
		out := child(t, tc.variable+"="+srv.URL, "MEMORYSYNC_BASE_URL="+tc.base, "SSL_CERT_FILE="+root)
		if strings.Count(out, "child: stored after 1") != 3 || len(p.hosts) == 0 || p.hosts[0] != tc.host {
			t.Errorf("%s: the proxy saw %v\n%s", name, p.hosts, out)
		}
	}
	if _, ok := versions.Load("HTTP/2.0"); !ok {
		t.Error("nothing went through the tunnel by HTTP/2")
	}
}

func TestHTTP2IsSpokenWhereTheServerDoes(t *testing.T) {
	t.Parallel()
	srv, root, versions, connections := encrypted(t)
	out := child(t, "MEMORYSYNC_BASE_URL="+srv.URL, "SSL_CERT_FILE="+root)
	if _, ok := versions.Load("HTTP/2.0"); !ok || strings.Count(out, "child: stored after 1") != 3 || connections.Load() != 1 {
		t.Errorf("%d connections\n%s", connections.Load(), out)
	}
}
