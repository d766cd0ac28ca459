package memwrite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// rawServer answers each request with bytes, so that it can say what net/http
// would not let it. It reads the whole request first.
type rawServer struct {
	url      string
	mu       sync.Mutex
	requests int
	conns    []net.Conn
}

func (s *rawServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// speak starts a rawServer; answer is told the number of the request, from 1,
// and what it writes goes out before it says whether the connection stays.
// stop is closed at the end of the test.
func speak(t *testing.T, answer func(n int, c net.Conn, stop <-chan struct{}) (keep bool)) *rawServer {
	t.Helper()
	stop := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + l.Addr().String()}
	var conns sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			s.mu.Lock()
			s.requests++
			n := s.requests
			s.mu.Unlock()
			if !answer(n, c, stop) {
				return
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			conns.Go(func() { serve(c) })
		}
	}()
	t.Cleanup(func() {
		close(stop)
		l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		conns.Wait()
	})
	return s
}

func (s *rawServer) client(t *testing.T, p memwrite.RetryPolicy) *memwrite.Client {
	t.Helper()
	c, err := memwrite.New(memwrite.WithMemorySync(s.url, msKey), memwrite.WithRetryPolicy(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func whole(status, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", status, header, len(body), body)
}

// What servers, proxies and broken networks say in bytes. Each first answer is
// followed by a good one; tries is how many the call then took, and kind how it
// ends when it is given up.
func TestAnswersInOddBytes(t *testing.T) {
	t.Parallel()
	good := whole("201 Created", "", storedBody)
	for name, tc := range map[string]struct {
		first string
		keep  bool
		tries int
		kind  memwrite.Kind // 0: the first answer is a success
	}{
		"HTTP/1.0 without a length":        {"HTTP/1.0 201 Created\r\n\r\n" + storedBody, false, 1, 0},
		"HTTP/1.0 with a length":           {strings.Replace(good, "HTTP/1.1", "HTTP/1.0", 1), false, 1, 0},
		"HTTP/1.0 kept alive":              {strings.Replace(whole("201 Created", "Connection: keep-alive\r\n", storedBody), "HTTP/1.1", "HTTP/1.0", 1), true, 1, 0},
		"HTTP/1.0 without a length, cut":   {"HTTP/1.0 201 Created\r\n\r\n" + storedBody[:20], false, 2, memwrite.KindUnknownOutcome},
		"no length and no end, cut":        {"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" + storedBody[:20], false, 2, memwrite.KindUnknownOutcome},
		"100, 102 and 103 first":           {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + good, true, 1, 0},
		"103 and nothing more":             {"HTTP/1.1 103 Early Hints\r\n\r\n", false, 2, memwrite.KindUnknownOutcome},
		"hints without end":                {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100_000), false, 2, memwrite.KindUnknownOutcome},
		"101 nobody asked for":             {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", false, 2, memwrite.KindUnknownOutcome},
		"204":                              {"HTTP/1.1 204 No Content\r\n\r\n", true, 2, memwrite.KindUnknownOutcome},
		"204 with a length":                {"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", false, 2, memwrite.KindUnknownOutcome},
		"205":                              {"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", true, 2, memwrite.KindUnknownOutcome},
		"304":                              {"HTTP/1.1 304 Not Modified\r\n\r\n", true, 1, memwrite.KindRedirect},
		"300 without a place":              {"HTTP/1.1 300 Multiple Choices\r\nContent-Length: 0\r\n\r\n", true, 1, memwrite.KindRedirect},
		"302 without a place":              {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", true, 1, memwrite.KindRedirect},
		"307 without a place":              {"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\n\r\n", true, 1, memwrite.KindRedirect},
		"307 to nonsense":                  {"HTTP/1.1 307 Temporary Redirect\r\nLocation: ://%zz\r\nContent-Length: 0\r\n\r\n", true, 1, memwrite.KindRedirect},
		"307 to another scheme":            {"HTTP/1.1 307 Temporary Redirect\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n", true, 1, memwrite.KindRedirect},
		"chunks and a trailer":             {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n", len(storedBody), storedBody), true, 1, 0},
		"chunks without the last":          {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(storedBody), storedBody), false, 2, memwrite.KindUnknownOutcome},
		"chunks of a wrong length":         {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + storedBody, false, 2, memwrite.KindUnknownOutcome},
		"a cut trailer":                    {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\nX-Su", len(storedBody), storedBody), false, 2, memwrite.KindUnknownOutcome},
		"two lengths":                      {"HTTP/1.1 201 Created\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n{}", false, 2, memwrite.KindUnknownOutcome},
		"a negative length":                {"HTTP/1.1 201 Created\r\nContent-Length: -4\r\n\r\n{}", false, 2, memwrite.KindUnknownOutcome},
		"a length that is too long":        {"HTTP/1.1 201 Created\r\nContent-Length: 9223372036854775807\r\n\r\n" + storedBody, false, 2, memwrite.KindUnknownOutcome},
		"an answer behind the answer":      {good + good, true, 1, 0},
		"not HTTP":                         {"SSH-2.0-OpenSSH_9.6\r\n", false, 2, memwrite.KindUnknownOutcome},
		"TLS where none is spoken":         {"\x15\x03\x01\x00\x02\x02\x46", false, 2, memwrite.KindUnknownOutcome},
		"a status of two digits":           {"HTTP/1.1 20 OK\r\n\r\n", false, 2, memwrite.KindUnknownOutcome},
		"a status above all":               {whole("999 What", "", "{}"), true, 2, memwrite.KindUnknownOutcome},
		"a header without end":             {"HTTP/1.1 201 Created\r\nX-Long: " + strings.Repeat("x", 11<<20), false, 2, memwrite.KindUnknownOutcome},
		"a header with a broken name":      {"HTTP/1.1 201 Created\r\nbad name: 1\r\nContent-Length: 2\r\n\r\n{}", false, 2, memwrite.KindUnknownOutcome},
		"nothing":                          {"", false, 2, memwrite.KindUnknownOutcome},
		"half a status line":               {"HTTP/1.1 2", false, 2, memwrite.KindUnknownOutcome},
		"gzip that is none":                {whole("201 Created", "Content-Encoding: gzip\r\n", storedBody), true, 2, memwrite.KindUnknownOutcome},
		"an encoding nobody asked for":     {whole("201 Created", "Content-Encoding: br\r\n", "\x0b\x02\x80\x03"), true, 2, memwrite.KindUnknownOutcome},
		"two documents":                    {whole("201 Created", "", storedBody+storedBody), true, 2, memwrite.KindUnknownOutcome},
		"a byte order mark":                {whole("201 Created", "", "\xef\xbb\xbf"+storedBody), true, 2, memwrite.KindUnknownOutcome},
		"space around the document":        {whole("201 Created", "", " \r\n"+storedBody+"\n\n"), true, 1, 0},
		"no content type":                  {"HTTP/1.1 201 Created\r\nContent-Length: " + fmt.Sprint(len(storedBody)) + "\r\n\r\n" + storedBody, true, 1, 0},
		"200 in place of 201":              {whole("200 OK", "", storedBody), true, 1, 0},
		"202 with the memory":              {whole("202 Accepted", "", storedBody), true, 1, 0},
		"error status with a good body":    {whole("500 Oops", "", storedBody), true, 2, memwrite.KindServer},
		"good status with an error's body": {whole("200 OK", "", `{"error":"x"}`), true, 2, memwrite.KindUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			write := func(c net.Conn, s string) {
				c.SetWriteDeadline(time.Now().Add(20 * time.Second))
				io.WriteString(c, s)
			}
			s := speak(t, func(n int, c net.Conn, stop <-chan struct{}) bool {
				if n > 1 {
					write(c, good)
					return true
				}
				write(c, tc.first)
				return tc.keep
			})
			res, err := s.client(t, quick()).Add(t.Context(), theNote())
			if tc.kind == 0 || tc.tries > 1 {
				if err != nil || res.Tries != tc.tries || s.count() != tc.tries || res.Outcome != memwrite.Stored {
					t.Fatalf("%+v, %v, %d requests; want %d tries", res, err, s.count(), tc.tries)
				}
			}
			if tc.kind == 0 {
				return
			}
			p := quick()
			p.MaxTries = 2
			always := speak(t, func(_ int, c net.Conn, stop <-chan struct{}) bool {
				write(c, tc.first)
				return tc.keep
			})
			_, err = always.client(t, p).Add(t.Context(), theNote())
			var e *memwrite.Error
			if !errors.As(err, &e) || e.Kind != tc.kind || e.Tries != tc.tries || e.Identity != "note-0001" {
				t.Errorf("%v, tries %d", err, e.Tries)
			}
			if strings.ContainsAny(err.Error(), "\r\n\x00") || len(err.Error()) > 2000 {
				t.Errorf("%q", err.Error())
			}
		})
	}
}

// A server that takes the request and then says nothing, says half of it, or
// drips: the try's timeout ends it, the call goes on.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	good := whole("201 Created", "", storedBody)
	for name, hang := range map[string]string{
		"before the answer": "", "in the status line": "HTTP/1.1 2", "in the headers": "HTTP/1.1 201 Created\r\nX-A: ",
		"before the body": "HTTP/1.1 201 Created\r\nContent-Length: 50\r\n\r\n", "in the body": "HTTP/1.1 201 Created\r\nContent-Length: 50\r\n\r\n{",
		"between chunks":         "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"before the trailer":     "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
		"after a 103":            "HTTP/1.1 103 Early Hints\r\n\r\n",
		"in the body of a 503":   "HTTP/1.1 503 Down\r\nContent-Length: 50\r\n\r\n{",
		"in the body of a 307":   "HTTP/1.1 307 Elsewhere\r\nLocation: /memory/add\r\nContent-Length: 50\r\n\r\n{",
		"in gzip asked for":      "HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: 50\r\n\r\n\x1f\x8b\x08",
		"in an oversized answer": "HTTP/1.1 503 Down\r\nContent-Length: 900000\r\n\r\n" + strings.Repeat("x", 70<<10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := speak(t, func(n int, c net.Conn, stop <-chan struct{}) bool {
				if n > 1 {
					io.WriteString(c, good)
					return true
				}
				io.WriteString(c, hang)
				<-stop
				return false
			})
			p := quick()
			p.TryTimeout, p.MaxTries = 200*time.Millisecond, 30 // a busy machine may take several
			began := time.Now()
			res, err := s.client(t, p).Add(t.Context(), theNote())
			if err != nil || res.Tries < 2 {
				t.Errorf("%+v, %v", res, err)
			}
			if d := time.Since(began); d > 5*time.Minute {
				t.Errorf("took %v", d)
			}
			// And a caller that goes away is not held for the try's timeout.
			p.TryTimeout = time.Hour
			held := speak(t, func(_ int, c net.Conn, stop <-chan struct{}) bool {
				io.WriteString(c, hang)
				<-stop
				return false
			})
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
			defer cancel()
			began = time.Now()
			_, err = held.client(t, p).Add(ctx, theNote())
			if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || d > 5*time.Minute {
				t.Errorf("%v after %v", err, d)
			}
		})
	}
}

// The rest of an oversized answer is dropped for a second at most, also when it
// comes too slowly to end and the try has an hour left.
func TestDrainingAnAnswerTakesASecondAtMost(t *testing.T) {
	t.Parallel()
	s := speak(t, func(n int, c net.Conn, stop <-chan struct{}) bool {
		if n > 1 {
			io.WriteString(c, whole("201 Created", "", storedBody))
			return true
		}
		io.WriteString(c, "HTTP/1.1 503 Down\r\nContent-Length: 900000\r\n\r\n"+strings.Repeat("x", 70<<10))
		<-stop
		return false
	})
	p := quick()
	p.TryTimeout = time.Hour
	began := time.Now()
	res, err := s.client(t, p).Add(t.Context(), theNote())
	if err != nil || res.Tries != 2 {
		t.Fatal(res, err)
	}
	if d := time.Since(began); d < 900*time.Millisecond || d > 5*time.Minute {
		t.Errorf("took %v", d)
	}
}

// Redirects that stay on the host are followed a few times and no more.
func TestAChainOfRedirectsEnds(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, opt memwrite.Option) {
		for _, loop := range []bool{true, false} {
			srv := listen(t, func(n int, w http.ResponseWriter, r *http.Request) {
				to := r.URL.Path
				if !loop {
					to = fmt.Sprintf("/memory/add/%d", n)
				}
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			})
			_, err := srv.client(t, opt).Add(t.Context(), theNote())
			var e *memwrite.Error
			if !errors.Is(err, memwrite.ErrRedirect) || !errors.As(err, &e) || e.Target == "" {
				t.Error(err)
			}
			if n := len(srv.requests()); n != 6 || e.Tries != n {
				t.Errorf("%d requests, %d tries", n, e.Tries)
			}
			for _, r := range srv.requests() {
				if r.body != srv.requests()[0].body || r.header.Get("X-API-Key") != msKey || r.header.Get("Referer") != "" {
					t.Errorf("a hop carries %v", r)
				}
			}
		}
	})
}
