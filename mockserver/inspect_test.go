package mockserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// look fetches a page of the inspector.
func look(t *testing.T, s *mockserver.Server, path string) string {
	t.Helper()
	res, err := http.Get(s.InspectorURL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d %s, %v", path, res.StatusCode, body, err)
	}
	return string(body)
}

// inferred makes a write and waits for its end.
func inferred(t *testing.T, c *memwrite.Client, key, text string) *memwrite.Event {
	t.Helper()
	r, err := c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", key), Scope: memwrite.Scope{UserID: "sam"}, Content: text})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.WaitForEvent(t.Context(), r.EventID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestInspectorShowsWhatAWriteWentThrough(t *testing.T) {
	s := mockserver.Run(t)
	c := s.Client(t)
	s.Arm(mockserver.Fault{Kind: mockserver.DropResponse})
	s.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit})
	const text = "My team <script>alert(1)</script> ships releases every Thursday."
	e := inferred(t, c, "0001", text)

	one := look(t, s, "writes/"+e.ID)
	for _, want := range []string{"accepted", "replayed", "claimed by", "planned", "committed", "unfinished", "reclaimed by", "succeeded", "2 credits settled", "the answer was lost (drop_response)", "2 of 5", "gone"} {
		if !strings.Contains(one, want) {
			t.Errorf("the page of the write lacks %q", want)
		}
	}
	if strings.Contains(one, "Thursday") {
		t.Error("the page of the write shows the text")
	}
	records := look(t, s, "records")
	if strings.Contains(records, "<script>alert") || !strings.Contains(records, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the text of a record is not escaped")
	}
	if requests := look(t, s, "requests"); !strings.Contains(requests, "duplicate of 1") || strings.Contains(requests, "Thursday") || strings.Contains(requests, s.FishMemKey) {
		t.Errorf("the requests: %s", requests)
	}
	if ledger := look(t, s, "ledger"); !strings.Contains(ledger, ">balanced<") || !strings.Contains(ledger, "settle") {
		t.Errorf("the ledger: %s", ledger)
	}
	for _, q := range []string{e.ID, "note-0001", "SAM", e.Results[0].ID} {
		if page := look(t, s, "?q="+url.QueryEscape(q)); !strings.Contains(page, "w-"+e.ID) {
			t.Errorf("searching %q does not find the write", q)
		}
	}
	if page := look(t, s, "?q=nobody"); strings.Contains(page, "w-"+e.ID) {
		t.Error("searching nobody finds the write")
	}
	if page := look(t, s, "?state=FAILED"); strings.Contains(page, "w-"+e.ID) {
		t.Error("the filter shows another state")
	}
	if load := look(t, s, "load"); !strings.Contains(load, "Accepted: now") {
		t.Error("the load page has no chart")
	}
}

func TestInspectorPagesThroughManyWrites(t *testing.T) {
	s := mockserver.Run(t)
	c := s.Client(t)
	for n := range 205 {
		if _, err := c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("n", fmt.Sprint(n)), Scope: memwrite.Scope{UserID: "sam"}, Content: "My team ships releases every Thursday."}); err != nil {
			t.Fatal(err)
		}
	}
	seen, path := 0, ""
	for range 4 {
		page := look(t, s, path)
		seen += strings.Count(page, `id="w-`)
		_, rest, more := strings.Cut(page, `<a id="older" href="/_inspector/`)
		if !more {
			break
		}
		path, _, _ = strings.Cut(rest, `"`)
		path = strings.ReplaceAll(path, "&amp;", "&")
	}
	if seen != 205 {
		t.Errorf("%d of 205 writes are listed", seen)
	}
}

func TestInspectorRefusesStrangers(t *testing.T) {
	s := mockserver.Run(t)
	call := func(edit func(*http.Request)) int {
		t.Helper()
		req, _ := http.NewRequest("GET", s.InspectorURL(), nil)
		edit(req)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	form := func(r *http.Request, origin string) {
		r.Method, r.URL.Path = "POST", "/_inspector/faults"
		r.Body = io.NopCloser(strings.NewReader("do=freeze"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
	}
	for _, row := range []struct {
		name string
		edit func(*http.Request)
		want int
	}{
		{"this machine", func(*http.Request) {}, 200},
		{"a name from elsewhere", func(r *http.Request) { r.Host = "rebound.example" }, 401},
		{"elsewhere with the token", func(r *http.Request) { r.Host = "rebound.example"; r.SetBasicAuth("", s.ControlToken) }, 200},
		{"a wrong token", func(r *http.Request) { r.SetBasicAuth("", "no") }, 401},
		{"a form of nobody", func(r *http.Request) { form(r, "") }, 403},
		{"a form of another page", func(r *http.Request) { form(r, "http://evil.example") }, 403},
		{"a form of another site's frame", func(r *http.Request) { form(r, s.URL); r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"its own form", func(r *http.Request) { form(r, s.URL) }, 303},
	} {
		if got := call(row.edit); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestInspectorShowsNoOtherWorkspace(t *testing.T) {
	s := mockserver.Run(t)
	other, err := memwrite.New(memwrite.WithFishMem(s.URL, s.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read")))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	e := inferred(t, other, "1", "Their team ships releases every Monday.")
	if page := look(t, s, "?q="+e.ID); strings.Contains(page, "w-"+e.ID) {
		t.Error("a write of another workspace is found")
	}
	res, err := http.Get(s.InspectorURL() + "writes/" + e.ID)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("the write of another workspace answers %d", res.StatusCode)
	}
	if page := look(t, s, "?workspace=other"); !strings.Contains(page, "w-"+e.ID) {
		t.Error("its own workspace does not show it")
	}
	if page := look(t, s, "records?workspace=other"); !strings.Contains(page, "Monday") {
		t.Error("its own workspace does not show the record")
	}
}

func TestInspectorArmsFaultsAndMovesTheClock(t *testing.T) {
	s := mockserver.Run(t)
	post := func(form url.Values) string {
		t.Helper()
		req, _ := http.NewRequest("POST", s.InspectorURL()+"faults", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", s.URL)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return string(body)
	}
	if page := post(url.Values{"do": {"arm"}, "kind": {"status"}, "point": {"before_inference"}, "code": {"503"}, "times": {"2"}, "retry_after": {"1"}}); !strings.Contains(page, "Armed: status.") || !strings.Contains(page, "0 of 2") {
		t.Errorf("arming: %s", page)
	}
	if page := post(url.Values{"do": {"disarm"}, "number": {"1"}}); !strings.Contains(page, "Disarmed.") || !strings.Contains(page, "over") {
		t.Errorf("disarming: %s", page)
	}
	before := s.Now()
	post(url.Values{"do": {"advance"}, "by": {"720h"}})
	if got := s.Now().Sub(before); got < 720*time.Hour {
		t.Errorf("the clock moved by %s", got)
	}
	post(url.Values{"do": {"freeze"}})
	now := s.Now()
	if post(url.Values{"do": {"advance"}, "by": {"1s"}}); s.Now().Sub(now) != time.Second {
		t.Error("the frozen clock does not stand still")
	}
	post(url.Values{"do": {"thaw"}})
	for _, wrong := range []url.Values{{"do": {"advance"}, "by": {"-1h"}}, {"do": {"advance"}, "by": {"9999999h"}}, {"do": {"arm"}, "kind": {"nonsense"}}, {"do": {"arm"}, "kind": {"status"}, "times": {"x"}}, {"do": {"disarm"}, "number": {"77"}}, {"do": {"fly"}}} {
		if page := post(wrong); !strings.Contains(page, `class="said wrong"`) {
			t.Errorf("%v is not refused", wrong)
		}
	}
}

func TestCloseEndsOpenStreamsAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := mockserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	var streams []io.ReadCloser
	for range 10 {
		res, err := client.Get(s.InspectorURL() + "live")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "data: tick\n" {
			t.Fatalf("the stream begins with %q, %v", line, err)
		}
		streams = append(streams, res.Body)
	}
	s.Close()
	for _, stream := range streams {
		_, _ = io.Copy(io.Discard, stream)
		_ = stream.Close()
	}
	client.CloseIdleConnections()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}
