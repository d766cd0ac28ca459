package serverbench

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

const (
	workspace   = "default"
	connections = 16
)

// add is the body of a write, and memory the answer to it: both sides of the
// comparison know them.
type add struct {
	Text      string `json:"text"`
	ClientRef string `json:"client_ref"`
	Source    string `json:"source"`
}

type stored struct {
	ID         int64           `json:"id"`
	UserID     int64           `json:"user_id"`
	Text       string          `json:"text"`
	Summary    *string         `json:"summary"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	Metadata   json.RawMessage `json:"metadata"`
	Tags       []string        `json:"tags"`
	Source     string          `json:"source"`
	EventType  *string         `json:"event_type"`
	Tier       string          `json:"tier"`
	Importance float64         `json:"importance"`
	IsSummary  bool            `json:"is_summary"`
	ExpiresAt  *string         `json:"expires_at"`
	KeyPoints  []string        `json:"key_points"`
	Quality    *float64        `json:"quality_score"`
	MemoryType string          `json:"memory_type"`
}

// bare decodes the write and answers the same JSON, and does nothing else.
func bare(t *testing.T) string {
	t.Helper()
	var last atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in add
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, "", http.StatusUnprocessableEntity)
			return
		}
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-ID", rand.Text())
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(stored{
			ID: last.Add(1), UserID: 7, Text: in.Text, CreatedAt: at, UpdatedAt: at, Metadata: json.RawMessage("{}"), Tags: []string{},
			Source: in.Source, Tier: "hot", Importance: 0.5, KeyPoints: []string{}, MemoryType: "fact",
		})
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// overCore is the server's own service and engine on a store that is filled
// already, with a listener.
func overCore(t *testing.T, c *core) *caller {
	t.Helper()
	eng := engine.New(engine.Config{Store: c.store, Scheduler: sched.Real(), Comparer: comparer{},
		Extractor: protocol.ExtractorFunc(extracted)})
	eng.Start()
	t.Cleanup(eng.Close)
	const key = "ms_test_bench"
	svc := service.New(backend.New(eng, sched.Real()), service.NewKeys(service.NewKey(key, workspace, service.ServiceMemorySync, service.ScopeMemoryAll)),
		sched.Real(), extract.LowValue, service.Options{})
	srv := httptest.NewServer(svc)
	t.Cleanup(srv.Close)
	return newCaller(t, srv.URL, key)
}

// caller writes over so many connections at once.
type caller struct {
	base, key string
	http      *http.Client
	sent      atomic.Int64
}

func newCaller(t *testing.T, base, key string) *caller {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	t.Cleanup(tr.CloseIdleConnections)
	return &caller{base: base, key: key, http: &http.Client{Transport: tr}}
}

// write makes n writes. Each is of an end user of its own, so that none is
// compared with the facts of another.
func (c *caller) write(n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, connections)
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c.one(); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

func (c *caller) one() error {
	i := c.sent.Add(1)
	body, err := json.Marshal(add{"My team ships releases every Thursday.", fmt.Sprintf("note-%d", i), "notes"})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, c.base+"/memory/add", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-API-Key", c.key)
	req.Header.Set("X-End-User-ID", fmt.Sprintf("user-%d", i))
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var m stored
	if err := json.Unmarshal(answer, &m); err != nil || res.StatusCode != http.StatusCreated || m.ID == 0 || m.Text == "" {
		return fmt.Errorf("status %d, %w", res.StatusCode, err)
	}
	return nil
}
