package server_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/engine"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/server"
	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

const (
	adderKey  = "ms_durable_0123456789"
	writerKey = "fm_durable_0123456789"
)

// durable is a node on a SQLite file on a disk that is watched, behind a real
// listener.
func durable(t *testing.T) (url string, d *disk.Disk) {
	t.Helper()
	d, err := disk.New()
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memwrite.db"), sqlite.Options{VFS: d.Name()})
	if err != nil {
		t.Fatal(err)
	}
	url, _ = serving(t, server.Options{
		Store: store,
		Keys: []service.Key{
			service.NewKey(adderKey, "default", service.ServiceMemorySync, service.ScopeMemoryAll),
			service.NewKey(writerKey, "default", service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead),
		},
		Workspaces: []protocol.Workspace{{ID: "default", AddsPerMonth: -1, Credits: -1}},
		Limits:     engine.Limits{Lease: time.Second, RepairEvery: 50 * time.Millisecond, BackOff: protocol.BackOff{Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond}},
	})
	t.Cleanup(func() { d.Fail(nil) })
	return url, d
}

// infer sends one inferred write and gives its answer.
func infer(t *testing.T, url, key string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/memories", strings.NewReader(`{"content":"I like tea","user_id":"sam"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+writerKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(raw)
}

func TestA202ComesAfterASync(t *testing.T) {
	t.Parallel()
	url, d := durable(t)
	for i := range 20 {
		before := d.Syncs()
		if status, _, body := infer(t, url, "key-"+string(rune('a'+i))); status != http.StatusAccepted {
			t.Fatalf("answers %d %s", status, body)
		}
		if d.Syncs() == before {
			t.Fatal("the log was not synced before the answer")
		}
	}
}

// While the disk is full or broken a caller is told to come again, and what was
// accepted before goes on when there is room.
func TestABrokenDiskIsA503AndHeals(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int32{"full": disk.Full, "EIO": disk.EIO} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, d := durable(t)
			client, err := memwrite.New(memwrite.WithMemorySync(url, adderKey), memwrite.WithFishMem(url, writerKey),
				memwrite.WithRetryPolicy(memwrite.RetryPolicy{MaxTries: 50, Base: 10 * time.Millisecond, Cap: 50 * time.Millisecond, NoBudget: true, NoGate: true}))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			before, err := client.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "before"), Scope: memwrite.Scope{UserID: "sam"}, Content: "I like coffee in the morning"})
			if err != nil {
				t.Fatal(err)
			}
			d.Fail(func(op disk.Op, _ string) int32 {
				if op == disk.Write {
					return code
				}
				return disk.OK
			})
			status, header, body := infer(t, url, "while")
			if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
				t.Errorf("answers %d %s", status, body)
			}
			// A client that keeps sending gets through when the disk is well.
			added := make(chan error, 1)
			go func() {
				_, err := client.Add(t.Context(), memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")})
				added <- err
			}()
			d.Fail(nil)
			if status, _, body := infer(t, url, "while"); status != http.StatusAccepted {
				t.Errorf("after it healed: %d %s", status, body)
			}
			if err := <-added; err != nil {
				t.Errorf("after it healed: %v", err)
			}
			if e, err := client.WaitForEvent(t.Context(), before.EventID); err != nil || e.Status != memwrite.Succeeded || len(e.Results) != 1 {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}
