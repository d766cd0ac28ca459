package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/server/internal/pgtest"
)

// running is `memwrite serve` inside this test.
type running struct {
	url  string
	stop func() error
	log  *lines
}

// lines is what a command printed; url is sent once.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
	url chan string
}

var serving = regexp.MustCompile(`msg=serving url=(\S+)`)

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := serving.FindSubmatch(p); m != nil {
		l.url <- string(m[1])
	}
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{url: make(chan string, 1)}
	cmd := root()
	cmd.SetArgs(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...))
	cmd.SetErr(out)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	r := &running{log: out, stop: sync.OnceValue(func() error { cancel(); return <-ended })}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("serve ended with %v", err)
		}
	})
	select {
	case r.url = <-out.url:
	case err := <-ended:
		ended <- nil
		t.Fatalf("serve ended with %v\n%s", err, out)
	}
	return r
}

// environment runs `memwrite keys` and gives what a shell would export.
func environment(t *testing.T, db, url string) map[string]string {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs([]string{"keys", "--db", db, "--url", url})
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, w := range strings.Fields(out.String()) {
		if name, value, ok := strings.Cut(w, "="); ok {
			env[name] = value
		}
	}
	return env
}

func TestServeKeepsWhatItAcceptedOverARestart(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memwrite.db")
	add := memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")}
	for _, want := range []memwrite.AddOutcome{memwrite.Stored, memwrite.AlreadyIngested} {
		srv := start(t, "--db", db)
		env := environment(t, db, srv.url)
		if env["FISHMEM_BASE_URL"] != srv.url {
			t.Fatalf("keys print %v", env)
		}
		client, err := memwrite.New(memwrite.WithMemorySync(env["MEMORYSYNC_BASE_URL"], env["MEMORYSYNC_API_KEY"]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Add(t.Context(), add)
		if err != nil || got.Outcome != want {
			t.Errorf("%+v, %v, want %v", got, err, want)
		}
		client.Close()
		if err := srv.stop(); err != nil {
			t.Fatal(err)
		}
		log := srv.log.String()
		for _, s := range []string{env["MEMORYSYNC_API_KEY"], env["FISHMEM_API_KEY"], "Thursday", "acme"} {
			if strings.Contains(log, s) {
				t.Errorf("the log holds %q:\n%s", s, log)
			}
		}
		if !strings.Contains(log, "msg=stopped") || !strings.Contains(log, "store=sqlite") {
			t.Errorf("the log says\n%s", log)
		}
	}
}

func TestASecondServerOnOneFileIsRefused(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "memwrite.db")
	start(t, "--db", db)
	cmd := root()
	cmd.SetArgs([]string{"serve", "--listen", "127.0.0.1:0", "--db", db})
	cmd.SetErr(&lines{url: make(chan string, 1)})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("says %v", err)
	}
}

func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	srv := start(t, "--db", filepath.Join(t.TempDir(), "memwrite.db"), "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(srv.url, "https://") {
		t.Fatalf("serves %s", srv.url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	res, err := client.Get(srv.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("answers %d", res.StatusCode)
	}
}

func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return written(t, "cert.pem", string(public)), written(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))), pool
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs([]string{"version"})
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "memwrite ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// Two nodes of the program on one database: what one accepts is read from the
// other.
func TestServeOnASharedDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte("keys:\n  - key: ms_shared_0123456789\n    service: memorysync\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := start(t, "--database-url", url, "--keys", keys)
	two := start(t, "--database-url", url, "--keys", keys)
	var outcomes []memwrite.AddOutcome
	for _, r := range []*running{one, two} {
		c, err := memwrite.New(memwrite.WithMemorySync(r.url, "ms_shared_0123456789"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		got, err := c.Add(t.Context(), memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")})
		if err != nil {
			t.Fatal(err)
		}
		outcomes = append(outcomes, got.Outcome)
	}
	if outcomes[0] != memwrite.Stored || outcomes[1] != memwrite.AlreadyIngested {
		t.Errorf("outcomes %v", outcomes)
	}
}

// Keys that a node made itself are no other node's, and it says so; keys that
// are given, and a node that is alone, are no reason to.
func TestServeWarnsOfKeysThatOtherNodesDoNotKnow(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	dir := t.TempDir()
	db := filepath.Join(dir, "memwrite.db")
	own := start(t, "--database-url", url, "--db", db)
	made := filepath.Join(dir, "keys.yaml")
	const words = "every other node on the database refuses them"
	if said := own.log.String(); !strings.Contains(said, "level=WARN") || !strings.Contains(said, words) || !strings.Contains(said, "--keys") || !strings.Contains(said, made) {
		t.Errorf("no warning in\n%s", said)
	}
	for name, args := range map[string][]string{
		"with a file": {"--database-url", url, "--keys", made},
		"on SQLite":   {"--db", filepath.Join(t.TempDir(), "memwrite.db")},
	} {
		if said := start(t, args...).log.String(); strings.Contains(said, words) {
			t.Errorf("%s: a warning in\n%s", name, said)
		}
	}
}

func TestServeSaysWhereItsPagesAre(t *testing.T) {
	t.Parallel()
	r := start(t, "--db", filepath.Join(t.TempDir(), "memwrite.db"), "--inspector", "--metrics")
	for _, want := range []string{" inspector=" + r.url + "/_inspector/", " metrics=" + r.url + "/metrics"} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("no%s in\n%s", want, r.log)
		}
	}
}
