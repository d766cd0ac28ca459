package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

const key = "ms_bench"

// text makes a request of about 500 bytes, envelope included.
var text = strings.Repeat("Ships releases every Thursday. ", 10)

// stored is an answer of about 300 bytes.
const stored = `{"id":66438,"text":"Ships releases every Thursday","type":"fact","importance":0.5,` +
	`"tags":["work","releases"],"source":"notes","event_type":"note","created_at":"2026-06-16T09:30:00.000Z",` +
	`"updated_at":"2026-06-16T09:30:00.000Z","metadata":{"memwrite_text_sha256":"0123456789abcdef0123456789abcdef"}}`

// canned answers at once, without a connection.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, err := io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"7b1c"}},
		Body:          io.NopCloser(strings.NewReader(stored)),
		ContentLength: int64(len(stored)), Request: r,
	}, err
}

var errAnswer = errors.New("the answer is not the one that was given")

// newSDK is one Add by the client.
func newSDK(t testing.TB, base string, hc *http.Client) func() error {
	t.Helper()
	c, err := memwrite.New(memwrite.WithMemorySync(base, key), memwrite.WithHTTPClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	req := memwrite.AddRequest{Text: text, EndUserID: "acme", Ref: memwrite.NewRef("note", "0001"), Source: "notes"}
	return func() error {
		res, err := c.Add(context.Background(), req)
		if err == nil && (res.Outcome != memwrite.Stored || res.Memory.ID != 66438 || res.Memory.Text == "") {
			err = errAnswer
		}
		return err
	}
}

// newRaw is the same call as somebody would write it who needs nothing of what
// the client adds: one try, and what the answer holds.
func newRaw(base string, hc *http.Client) func() error {
	type request struct {
		Text      string            `json:"text"`
		ClientRef string            `json:"client_ref"`
		Source    string            `json:"source"`
		Metadata  map[string]string `json:"metadata"`
	}
	type memory struct {
		ID         int64           `json:"id"`
		Text       string          `json:"text"`
		Type       string          `json:"type"`
		Importance float64         `json:"importance"`
		Tags       []string        `json:"tags"`
		Source     string          `json:"source"`
		EventType  string          `json:"event_type"`
		CreatedAt  string          `json:"created_at"`
		UpdatedAt  string          `json:"updated_at"`
		Metadata   json.RawMessage `json:"metadata"`
	}
	return func() error {
		sum := sha256.Sum256([]byte(text))
		body, err := json.Marshal(request{text, "note-0001", "notes", map[string]string{memwrite.HashField: hex.EncodeToString(sum[:]), memwrite.RefField: "note-0001"}})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30e9)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/memory/add", bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-API-Key", key)
		req.Header.Set("X-End-User-ID", "acme")
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var m memory
		if err := json.Unmarshal(answer, &m); err != nil {
			return err
		}
		if m.ID != 66438 || m.Text == "" {
			return errAnswer
		}
		return nil
	}
}

// loopback is a listener that answers like canned, a client with its own
// connections to it, and a count of what the client wrote to its sockets.
func loopback(t testing.TB) (base string, hc *http.Client, writes *atomic.Int64) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, stored)
	}))
	t.Cleanup(srv.Close)
	writes = new(atomic.Int64)
	tr := http.DefaultTransport.(*http.Transport).Clone()
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return wire{c, writes}, err
	}
	t.Cleanup(tr.CloseIdleConnections)
	return srv.URL, &http.Client{Transport: tr}, writes
}

// wire counts the writes of a connection.
type wire struct {
	net.Conn
	writes *atomic.Int64
}

func (w wire) Write(b []byte) (int, error) {
	w.writes.Add(1)
	return w.Conn.Write(b)
}
