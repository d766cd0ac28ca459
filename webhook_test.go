package memwrite_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

const hookSecret = "whsec_of_this_test"

// caught is a message as it came over the wire.
type caught struct {
	header http.Header
	body   []byte
}

// catch lets a server send one message and gives it.
func catch(t *testing.T) caught {
	t.Helper()
	got := make(chan caught, 8)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- caught{r.Header.Clone(), body}
	}))
	t.Cleanup(target.Close)
	srv := mockserver.Run(t, mockserver.Webhook(target.URL, hookSecret))
	if _, err := srv.Client(t).AddAndWait(t.Context(), noted("note-1")); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-got:
		return c
	case <-t.Context().Done():
		t.Fatal("no message came")
		return caught{}
	}
}

func noted(key string) memwrite.InferRequest {
	return memwrite.InferRequest{
		Content: "My team ships releases every Thursday.", Scope: memwrite.Scope{UserID: "acme"}, Key: memwrite.RefFromString(key),
	}
}

// hook is a handler on a listener of its own.
func hook(t *testing.T, o memwrite.WebhookOptions) (url string, h *memwrite.WebhookHandler) {
	t.Helper()
	if o.Secrets == nil {
		o.Secrets = []string{hookSecret}
	}
	h, err := memwrite.NewWebhookHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, h
}

func send(t *testing.T, url string, header http.Header, body []byte) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// resigned is the same message signed at another time, as a sender does it when
// it delivers again.
func resigned(c caught, secret string, at time.Time) http.Header {
	h := c.header.Clone()
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(stamp + "."))
	mac.Write(c.body)
	h.Set("X-Fishmem-Timestamp", stamp)
	h.Set("X-Fishmem-Signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
	return h
}

func TestAForgedTruncatedReencodedOrLateWebhookIsRefused(t *testing.T) {
	t.Parallel()
	c := catch(t)
	var handled atomic.Int32
	url, _ := hook(t, memwrite.WebhookOptions{Handle: func(context.Context, memwrite.WebhookEvent) error { handled.Add(1); return nil }})

	with := func(name, value string) http.Header {
		h := c.header.Clone()
		h.Del(name)
		if value != "" {
			h.Set(name, value)
		}
		return h
	}
	twice := c.header.Clone()
	twice.Add("X-Fishmem-Signature", c.header.Get("X-Fishmem-Signature"))
	var doc map[string]any
	if err := json.Unmarshal(c.body, &doc); err != nil {
		t.Fatal(err)
	}
	reencoded, _ := json.MarshalIndent(doc, "", " ")
	now := time.Now()
	signature := c.header.Get("X-Fishmem-Signature")
	for name, bad := range map[string]struct {
		header http.Header
		body   []byte
		status int
	}{
		"forged with another secret": {resigned(c, "guess", now), c.body, 401},
		"forged without a secret":    {resigned(c, "", now), c.body, 401},
		"no signature":               {with("X-Fishmem-Signature", ""), c.body, 401},
		"two signatures":             {twice, c.body, 401},
		"another scheme":             {with("X-Fishmem-Signature", strings.Replace(signature, "v1=", "v0=", 1)), c.body, 401},
		"half a signature":           {with("X-Fishmem-Signature", signature[:35]), c.body, 401},
		"no time":                    {with("X-Fishmem-Timestamp", ""), c.body, 401},
		"another time":               {with("X-Fishmem-Timestamp", strconv.FormatInt(now.Unix()+1, 10)), c.body, 401},
		"the time spelled otherwise": {with("X-Fishmem-Timestamp", "0"+c.header.Get("X-Fishmem-Timestamp")), c.body, 401},
		"truncated":                  {c.header, c.body[:len(c.body)-1], 401},
		"a byte added":               {c.header, append(bytes.Clone(c.body), '\n'), 401},
		"re-encoded":                 {c.header, reencoded, 401},
		"another body":               {c.header, bytes.Replace(c.body, []byte("acme"), []byte("evil"), 1), 401},
		"late":                       {resigned(c, hookSecret, now.Add(-6*time.Minute)), c.body, 401},
		"from the future":            {resigned(c, hookSecret, now.Add(6*time.Minute)), c.body, 401},
		"too large":                  {c.header, bytes.Repeat([]byte("a"), 1<<20+1), 413},
	} {
		if got := send(t, url, bad.header, bad.body); got != bad.status {
			t.Errorf("%s: %d, want %d", name, got, bad.status)
		}
	}
	if n := handled.Load(); n != 0 {
		t.Fatalf("%d bad messages were handled", n)
	}
	if got := send(t, url, c.header, c.body); got != 200 || handled.Load() != 1 {
		t.Fatalf("the message itself: %d, handled %d times", got, handled.Load())
	}
	if got := send(t, url, c.header, c.body); got != 409 || handled.Load() != 1 {
		t.Errorf("the very same request again: %d, handled %d times", got, handled.Load())
	}
	if got := send(t, url, resigned(c, hookSecret, now.Add(time.Second)), c.body); got != 200 || handled.Load() != 1 {
		t.Errorf("the same message delivered again: %d, handled %d times", got, handled.Load())
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

// A body that ends before its length is not a message either.
func TestAWebhookCutOffOnItsWayIsRefused(t *testing.T) {
	t.Parallel()
	c := catch(t)
	url, _ := hook(t, memwrite.WebhookOptions{Handle: func(context.Context, memwrite.WebhookEvent) error { t.Error("handled"); return nil }})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, io.MultiReader(bytes.NewReader(c.body[:20]), failingReader{}))
	req.Header, req.ContentLength = c.header.Clone(), int64(len(c.body))
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Error("answered", resp.StatusCode)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

func TestAWebhookThatWasNotHandledComesAgainAndADoubledOneIsOneEvent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var handled []string
	tries := 0
	h, err := memwrite.NewWebhookHandler(memwrite.WebhookOptions{
		WebhookVerifier: memwrite.WebhookVerifier{Secrets: []string{"the old one", hookSecret}},
		Handle: func(_ context.Context, e memwrite.WebhookEvent) error {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries == 1 {
				return errors.New("the database is away")
			}
			handled = append(handled, e.ID)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	done := make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		mu.Lock()
		defer mu.Unlock()
		if answers++; answers <= 2 { // the second was handled; its answer gets lost
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(rec.Code)
		close(done)
	}))
	t.Cleanup(target.Close)
	srv := mockserver.Run(t, mockserver.Webhook(target.URL, hookSecret))
	client := srv.Client(t)
	ev, err := client.AddAndWait(t.Context(), noted("note-1"))
	if err != nil {
		t.Fatal(err)
	}
	<-done
	mu.Lock()
	defer mu.Unlock()
	if len(handled) != 1 || handled[0] != "memory_add:"+ev.ID {
		t.Errorf("handled %q", handled)
	}
}

func TestOfTwoDeliveriesAtOnceOneIsHandled(t *testing.T) {
	t.Parallel()
	c := catch(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	var handled atomic.Int32
	url, _ := hook(t, memwrite.WebhookOptions{Handle: func(context.Context, memwrite.WebhookEvent) error {
		handled.Add(1)
		close(entered)
		<-leave
		return nil
	}})
	first := make(chan int)
	go func() { first <- send(t, url, c.header, c.body) }()
	<-entered
	if got := send(t, url, resigned(c, hookSecret, time.Now().Add(time.Second)), c.body); got != 503 {
		t.Errorf("a delivery while another is handled: %d", got)
	}
	close(leave)
	if got := <-first; got != 200 || handled.Load() != 1 {
		t.Errorf("the first: %d, handled %d times", got, handled.Load())
	}
}

func TestAWebhookOfAnAddedMemoryNamesItsEvent(t *testing.T) {
	t.Parallel()
	c := catch(t)
	e, err := memwrite.WebhookVerifier{Secrets: []string{hookSecret}}.Parse(c.header, c.body)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := e.MemoryAdded()
	if !ok || e.ID != "memory_add:"+m.EventID || m.UserID != "acme" || len(m.MemoryIDs) != 1 || m.Results != 1 || !strings.HasPrefix(e.Delivery, "wd_") {
		t.Errorf("%+v %+v", e, m)
	}
	if bytes.Contains(c.body, []byte("Thursday")) {
		t.Error("the message holds the memory's text")
	}
	if _, err := (memwrite.WebhookVerifier{}).Parse(c.header, c.body); !errors.Is(err, memwrite.ErrWebhookSignature) {
		t.Error("without a secret:", err)
	}
	if _, err := memwrite.NewWebhookHandler(memwrite.WebhookOptions{WebhookVerifier: memwrite.WebhookVerifier{Secrets: []string{""}}}); !errors.Is(err, memwrite.ErrInvalidInput) {
		t.Error("a handler without a secret:", err)
	}
}
