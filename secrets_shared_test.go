package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf16"

	memwrite "github.com/memwrite/memwrite-go"
)

// A call that never left is told why another one failed. Those words may quote
// what the other one sent, and that is nothing for this one's log.
func TestTheGateTellsNoCallWhatAnotherSent(t *testing.T) {
	t.Parallel()
	for _, status := range []int{503, 429} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var p printed
				hc := &http.Client{Transport: tripFunc(func(r *http.Request) (*http.Response, error) {
					said := heard(r)
					h := http.Header{"X-Request-Id": {"r-1"}}
					if status == 429 {
						h.Set("Retry-After", "80")
					}
					body := `{"code":"DOWN","message":"down while at ` + strings.NewReplacer(`"`, `'`, `\`, `/`).Replace(said) + `"}`
					return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body + said)), Request: r}, nil
				})}
				c := bubbleClient(t, nil, append(p.options(), memwrite.WithHTTPClient(hc))...)
				var all sync.WaitGroup
				for range 12 {
					all.Go(func() {
						_, err := c.Add(t.Context(), memwrite.AddRequest{Text: secretTurn, EndUserID: "acme", Ref: memwrite.NewRef("note", "0001")})
						p.error(err)
					})
				}
				time.Sleep(100 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := c.Add(ctx, theNote())
				var e *memwrite.Error
				if !errors.As(err, &e) || e.Tries != 0 || e.Status != status || e.Code != "DOWN" || e.RequestID != "r-1" {
					t.Errorf("%v (%+v)", err, e)
				}
				p.error(err)
				all.Wait()
				p.check(t, theSecrets())
			})
		})
	}
}

// The same text in the spellings of other languages' libraries.
func TestATextIsFoundInEverySpelling(t *testing.T) {
	t.Parallel()
	const text = "Ännchen 🙂 owes <b>\"Søren\" & Åse</b> 4471 €/month 😀 and it's \\ private; 私の口座番号は四四七一です、秘密。"
	escaped := func(format string, all bool) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(text)) {
			switch {
			case u == '"' || u == '\\':
				b.WriteString(`\` + string(rune(u)))
			case u < 0x80 && !all:
				b.WriteRune(rune(u))
			default:
				fmt.Fprintf(&b, format, u)
			}
		}
		return b.String()
	}
	html := func(quote, apostrophe string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, quote, "'", apostrophe).Replace(text)
	}
	for name, spelled := range map[string]string{
		"itself": text, "Python": escaped(`\u%04x`, false), "Java": escaped(`\u%04X`, false), "PHP": strings.ReplaceAll(escaped(`\u%04x`, false), "/", `\/`),
		"HTML of Go": html("&#34;", "&#39;"), "HTML of Python": html("&quot;", "&#x27;"), "HTML of nginx": html("&quot;", "&#39;"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := listen(t, func(_ int, w http.ResponseWriter, _ *http.Request) { respond(w, 400, "<p>"+spelled+"</p>") })
			note := theNote()
			note.Text = text
			_, err := srv.client(t).Add(t.Context(), note)
			var e *memwrite.Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			for _, word := range []string{"nnchen", "ren", "4471", "month", "private", "私", "79c1", "79C1", "d83d", "D83D"} {
				if strings.Contains(e.Snippet, word) {
					t.Errorf("%q is in %q", word, e.Snippet)
				}
			}
		})
	}
}

// What a call observer adds cannot be, or replace, a key.
func TestACallObserverAddsNoKey(t *testing.T) {
	t.Parallel()
	srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			respond(w, 201, storedBody)
			return
		}
		respond(w, 200, eventBody("task_1", memwrite.Succeeded))
	})
	c := srv.client(t, memwrite.WithObserver(adding{}))
	if _, err := c.Add(t.Context(), theNote()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Event(t.Context(), "task_1"); err != nil {
		t.Fatal(err)
	}
	for _, r := range srv.requests() {
		if r.method == http.MethodPost && (r.header.Get("X-API-Key") != msKey || r.header["Authorization"] != nil) ||
			r.method == http.MethodGet && (r.header.Get("Authorization") != "Bearer "+fmKey || r.header["X-Api-Key"] != nil) || r.header.Get("Traceparent") == "" {
			t.Errorf("%s carries %v", r.method, r.header)
		}
	}
}

type adding struct{}

func (adding) Observe(memwrite.Observation) {}
func (adding) ObserveCall(ctx context.Context, _ memwrite.Call, h http.Header) (context.Context, func(error)) {
	h.Set("Authorization", "Bearer other")
	h.Set("X-API-Key", "other")
	h.Set("Traceparent", "00-1-1-01")
	return ctx, func(error) {}
}

// A state nobody knows is the service's own word, and so is an event's id: no
// key stands in what is printed of them, and no line of its own.
func TestAStateNobodyKnowsHoldsNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p printed
		const id = "task_1\nlevel=ERROR"
		c := bubbleClient(t, func(*http.Request) (int, http.Header, string) {
			return 200, nil, `{"id":"task_1\nlevel=ERROR","status":"` + fmKey + `\nlevel=ERROR","results":[]}`
		}, p.options()...)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var seen memwrite.EventStatus
		_, err := c.WaitForEvent(ctx, id, memwrite.OnChange(func(e memwrite.Event) { seen = e.Status }))
		var e *memwrite.Error
		if !errors.As(err, &e) || seen == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, state %q", err, seen)
		}
		p.error(err)
		p.check(t, theSecrets())
	})
}
