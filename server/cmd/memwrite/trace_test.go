package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

// traced adds the traceparent of a caller to every request.
type traced struct{ id string }

func (a traced) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+a.id+"-00f067aa0ba902b7-01")
	return http.DefaultTransport.RoundTrip(r)
}

func TestServeSendsTheRunsOfTracedWritesToACollector(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := got.ReadFrom(body); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
	}))
	defer collector.Close()

	t.Setenv("MEMWRITE_FISHMEM_KEY", "fm_test_key_for_traces")
	r := start(t, "--db", filepath.Join(t.TempDir(), "memwrite.db"), "--otlp-endpoint", collector.URL+"/v1/traces")
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	c, err := memwrite.New(memwrite.WithFishMem(r.url, "fm_test_key_for_traces"), memwrite.WithHTTPClient(&http.Client{Transport: traced{id}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const text = "My team ships releases every Thursday."
	if _, err := c.AddAndWait(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "sam"}, Content: text}); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	raw, _ := hex.DecodeString(id)
	for _, want := range []string{string(raw), "memwrite accepted", "memwrite run", "memwrite.settled"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the collector was not told %q", want)
		}
	}
	if strings.Contains(got.String(), "Thursday") || strings.Contains(got.String(), "note-1") || strings.Contains(got.String(), "fm_test") {
		t.Error("the collector was told what it must not")
	}
}

func TestServeRefusesAnEndpointThatIsNone(t *testing.T) {
	cmd := root()
	cmd.SetArgs([]string{"serve", "--otlp-endpoint", "127.0.0.1:4318"})
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--otlp-endpoint") {
		t.Errorf("%v", err)
	}
}
