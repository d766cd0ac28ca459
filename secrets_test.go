package memwrite_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// Texts as users write them: with what JSON and HTML escape.
const (
	secretText  = "Sister Lucia manages the \"gold\" account & her number ends in <4471>."
	secretTurn  = "Mein Konto \\ endet auf 4471 – bitte nicht weitersagen."
	secretQuery = "which account ends in 4471, and who manages it?"
)

// theSecrets are the keys and the texts, whole, in part, and as JSON.
func theSecrets() []string {
	all := []string{msKey, fmKey}
	for _, s := range []string{secretText, secretTurn, secretQuery} {
		b, _ := json.Marshal(s)
		all = append(all, s, s[:30], s[len(s)-30:], string(b[1:len(b)-1]))
	}
	return all
}

// everyCall makes each call that carries a text, and some that do not.
func everyCall(ctx context.Context, c *memwrite.Client, p *printed) {
	note := memwrite.AddRequest{Text: secretText, EndUserID: "acme", Ref: memwrite.NewRef("note", "0001")}
	inferred := memwrite.InferRequest{Key: memwrite.NewRef("note", "0101").ForContent(secretText), Scope: memwrite.Scope{UserID: "sam"}, Content: secretText}
	messages := inferred
	messages.Content, messages.Messages = "", []memwrite.Message{{Role: "user", Content: secretText}, {Role: "assistant", Content: secretTurn}}
	turn := theTurn()
	turn.Text = secretTurn
	for _, call := range []func() error{
		func() error { _, err := c.Add(ctx, note); return err },
		func() error { _, err := c.AddTurn(ctx, turn); return err },
		func() error { _, err := c.AddAsync(ctx, inferred); return err },
		func() error { _, err := c.AddVerbatim(ctx, messages); return err },
		func() error { _, err := c.AddAndWait(ctx, inferred); return err },
		func() error { _, err := c.WaitForEvent(ctx, "task_1"); return err },
		func() error { _, err := c.Redrive(ctx, "task_1"); return err },
		func() error { _, err := c.Memory(ctx, "acme", 1); return err },
		func() error {
			_, err := c.Query(ctx, memwrite.QueryRequest{EndUserID: "acme", Query: secretQuery})
			return err
		},
		func() error {
			_, err := c.Search(ctx, memwrite.SearchRequest{Scope: memwrite.Scope{UserID: "sam"}, Query: secretQuery})
			return err
		},
		func() error {
			_, err := c.Replace(ctx, memwrite.ReplaceRequest{Old: note, New: memwrite.AddRequest{Text: secretText, EndUserID: "acme", Ref: note.Ref.Version(2)}})
			return err
		},
		func() error { _, err := c.Health(ctx); return err },
	} {
		p.error(call())
	}
	p.add("%v %+v %#v %s", note.Ref, note.Ref, note.Ref, inferred.Key)
	p.add("%v %+v %#v", c, c, c)
}

// heard is a request as a server sees it: the key, the body, and the texts that
// stand in it.
func heard(r *http.Request) string {
	b, _ := io.ReadAll(r.Body)
	said := r.Header.Get("X-API-Key") + " " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + " " + string(b)
	for _, text := range []string{secretText, secretTurn, secretQuery} {
		var quoted bytes.Buffer
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		enc.Encode(text)
		if bytes.Contains(b, bytes.TrimSpace(quoted.Bytes())) {
			said += " " + text
		}
	}
	return said
}

// Whatever a server says back, in whatever form, nothing that is printed holds
// a key or a text.
func TestNothingPrintedHoldsAKeyOrAText(t *testing.T) {
	t.Parallel()
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	spelled := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		return `"` + b.String() + `"`
	}
	for name, answer := range map[string]func(w http.ResponseWriter, said string){
		"plain": func(w http.ResponseWriter, s string) { w.WriteHeader(400); io.WriteString(w, s) },
		"nested": func(w http.ResponseWriter, s string) {
			respond(w, 422, `{"error":{"code":`+quoted(s)+`,"message":`+quoted(s)+`,"details":[`+quoted(s)+`]},"request_id":`+quoted(s)+`}`)
		},
		"flat": func(w http.ResponseWriter, s string) {
			respond(w, 409, `{"code":`+quoted(s)+`,"message":`+quoted(s)+`,"details":{`+quoted(s)+`:1}}`)
		},
		"detail": func(w http.ResponseWriter, s string) {
			respond(w, 403, `{"detail":[{"msg":`+quoted(s)+`,"input":`+quoted(s)+`}]}`)
		},
		"spelled": func(w http.ResponseWriter, s string) {
			respond(w, 400, `{"message":`+spelled(s)+`,"code":`+spelled(strings.TrimSpace(s))+`}`)
		},
		"one word": func(w http.ResponseWriter, s string) {
			respond(w, 503, `{"code":"`+strings.Fields(s)[0]+`","reason":"`+strings.Fields(s)[0]+`"}`)
		},
		"HTML":      func(w http.ResponseWriter, s string) { respond(w, 502, "<pre>"+s+"</pre>") },
		"a success": func(w http.ResponseWriter, s string) { respond(w, 200, `{"hello":`+quoted(s)+`}`) },
		"not JSON":  func(w http.ResponseWriter, s string) { respond(w, 200, s) },
		"truncated": func(w http.ResponseWriter, s string) { w.Header().Set("Content-Length", "99999"); respond(w, 500, s) },
		"quota":     func(w http.ResponseWriter, s string) { respond(w, 200, `{"status":"ok","note":`+quoted(s)+`}`) },
		"turn failed": func(w http.ResponseWriter, s string) {
			respond(w, 200, `{"processing_status":"failed","processing_error":`+quoted(s)+`}`)
		},
		"an event's end": func(w http.ResponseWriter, s string) {
			respond(w, 200, `{"id":"task_1","event_id":"task_1","status":"FAILED","error_code":`+quoted(s)+`,"results":[]}`)
		},
		"headers": func(w http.ResponseWriter, s string) {
			w.Header().Set("X-Request-Id", s)
			w.Header().Set("Retry-After", s)
			respond(w, 429, "")
		},
		"redirect": func(w http.ResponseWriter, s string) {
			w.Header().Set("Location", "/login/"+url.PathEscape(s)+"?next="+url.QueryEscape(s))
			w.WriteHeader(302)
		},
		"redirect that does not parse": func(w http.ResponseWriter, s string) {
			w.Header().Set("Location", "://"+s)
			w.WriteHeader(307)
		},
		"gzip": func(w http.ResponseWriter, s string) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(400)
			z := gzip.NewWriter(w)
			io.WriteString(z, `{"message":`+quoted(s)+`}`)
			z.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p printed
			srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				said := heard(r)
				if !strings.HasPrefix(r.URL.Path, "/login") { // where this server itself sent a read
					p.add("%s %s %s", r.Method, r.URL, r.Header.Get("Referer"))
				}
				answer(w, said)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			policy := quick()
			policy.MaxTries = 2
			short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
			defer stop()
			everyCall(short, srv.client(t, append(p.options(), memwrite.WithRetryPolicy(policy))...), &p)
			p.check(t, theSecrets())
		})
	}
}

// Nor what the network says: lines of an answer that net/http quotes in its
// errors, hosts that are not there, certificates, contexts.
func TestNothingTheNetworkSaysHoldsAKeyOrAText(t *testing.T) {
	t.Parallel()
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	raw := func(before, after string) string {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := heard(r)
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				io.WriteString(c, before+said+after)
				c.Close()
			}
		}))
		t.Cleanup(srv.Close)
		return srv.URL
	}
	for name, base := range map[string]string{
		"a line that is none":        raw("", "\r\n\r\n"),
		"a status that is none":      raw("HTTP/1.1 2x ", "\r\n\r\n"),
		"a status that is a text":    raw("HTTP/1.1 ", "\r\n\r\n"),
		"a version that is none":     raw("HTTP/", " 200 OK\r\n\r\n"),
		"a reason":                   raw("HTTP/1.1 400 ", "\r\nContent-Length: 0\r\n\r\n"),
		"a header without a colon":   raw("HTTP/1.1 200 OK\r\n", "\r\n\r\n"),
		"a header with a bad name":   raw("HTTP/1.1 200 OK\r\n", ": x\r\n\r\n"),
		"a continued header":         raw("HTTP/1.1 200 OK\r\n ", "\r\n\r\n"),
		"a length that is none":      raw("HTTP/1.1 200 OK\r\nContent-Length: ", "\r\n\r\n"),
		"an encoding":                raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: ", "\r\n\r\n"),
		"a chunk that is none":       raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\n"),
		"a trailer without a colon":  raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", "\r\n\r\n"),
		"a trailer nobody announced": raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ", "\r\n\r\n0\r\n\r\n"),
		"nobody there":               gone.URL,
		"a certificate":              encrypted.URL,
		"no such host":               "http://memorysync.invalid",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p printed
			policy := quick()
			policy.MaxTries = 2
			c, err := memwrite.New(append(p.options(), memwrite.WithMemorySync(base, msKey), memwrite.WithFishMem(base, fmKey), memwrite.WithRetryPolicy(policy))...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			everyCall(ctx, c, &p)
			p.check(t, theSecrets())
		})
	}
	t.Run("bad input", func(t *testing.T) {
		t.Parallel()
		var p printed
		for _, opt := range []memwrite.Option{
			memwrite.WithMemorySync("http://"+msKey+"@host/", msKey), memwrite.WithMemorySync("http://host/?key="+msKey, msKey),
			memwrite.WithMemorySync("http://ho st/"+msKey, msKey), memwrite.WithMemorySync("http://host", msKey+"\n"), memwrite.WithMemorySync("http://host", msKey+" x"),
		} {
			_, err := memwrite.New(append(p.options(), opt)...)
			if err == nil {
				t.Error("accepted")
			}
			p.error(err)
		}
		c, err := memwrite.New(append(p.options(), memwrite.WithMemorySync("http://host.invalid", msKey), memwrite.WithFishMem("http://host.invalid", fmKey))...)
		if err != nil {
			t.Fatal(err)
		}
		bad := memwrite.AddRequest{Text: secretText + "\xff", EndUserID: "acme", Ref: memwrite.NewRef("note", "1")}
		_, err = c.Add(t.Context(), bad)
		p.error(err)
		bad.Text, bad.Metadata = secretText, json.RawMessage(`{"memwrite_text_sha256":"`+msKey+`"}`)
		_, err = c.Add(t.Context(), bad)
		p.error(err)
		bad.Metadata, bad.Source = nil, strings.Repeat(secretText, 9)
		_, err = c.Add(t.Context(), bad)
		p.error(err)
		_, err = c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "sam"}, Messages: []memwrite.Message{{Role: secretText, Content: secretText}}})
		p.error(err)
		_, err = c.AddAsync(t.Context(), memwrite.InferRequest{Key: memwrite.NewRef("note", "1"), Scope: memwrite.Scope{UserID: "sam"}, Content: strings.Repeat(secretText, 9000)})
		p.error(err)
		canceled, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the worker stops"))
		everyCall(canceled, c, &p)
		slog.New(slog.NewTextHandler(&p, nil)).Info("a client", "client", c)
		p.check(t, theSecrets())
	})
}

// A panic prints its value and the arguments of functions as words of memory;
// this package has none of its own.
func TestThePackageDoesNotPanicByItself(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "internal/transport"} {
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name.Name(), ".go") || strings.HasSuffix(name.Name(), "_test.go") {
				continue
			}
			source, err := os.ReadFile(dir + "/" + name.Name())
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(source, []byte("panic(")) {
				t.Errorf("%s/%s panics", dir, name.Name())
			}
		}
	}
}
