package service

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// A cursor that is read is one that the server could have written; anything
// else is refused and begins no list from its start.
func FuzzCursor(f *testing.F) {
	f.Add(*nextCursor(time.Date(2026, 8, 1, 9, 0, 0, 123456789, time.UTC), "task_1"), 10)
	for _, s := range []string{"", "AA==", "MjAyNi0wOC0wMVQwOTowMDowMFoAdGFzaw==", "not base64", "MjAyNi0wOC0wMVQwOTowMDowMFoA", strings.Repeat("A", 3000)} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, cursor string, limit int) {
		page, refused := readCursor(&cursor, limit)
		if refused != nil {
			if refused.Code != "INVALID_CURSOR" || cursor == "" {
				t.Fatalf("%q: %+v", cursor, refused)
			}
			return
		}
		if cursor == "" {
			return
		}
		if page.ID == "" {
			t.Fatalf("%q starts the list anew", cursor)
		}
		again, refused := readCursor(nextCursor(page.At, page.ID), limit)
		if refused != nil || again.ID != page.ID || !again.At.Equal(page.At) {
			t.Fatalf("%q is %+v and then %+v, %+v", cursor, page, again, refused)
		}
	})
}

// However a preference is spelled, a request is held for 0 to 25 seconds.
func FuzzPrefer(f *testing.F) {
	for _, s := range []string{"wait=25", `wait="3"`, "respond-async, wait=10", "wait=-1", "wait=99999999999999999999", "wait", "WAIT = 1;foo", ",,;;", "wait=1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if d, ok := preferredWait(&header); d < 0 || d > maxWait || (!ok && d != 0) {
			t.Fatalf("%q: %v, %v", header, d, ok)
		}
	})
}

// A key that is taken is one that can be sent again and mean the same.
func FuzzIdempotencyKey(f *testing.F) {
	for _, s := range []string{"note-0001", "", " ", " k ", strings.Repeat("k", 200), strings.Repeat("k", 201), strings.Repeat("𝄞", 100), "\u00a0k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, refused := idempotencyKey(&header, true)
		if refused != nil {
			return
		}
		if key == "" || len(utf16.Encode([]rune(key))) > maxKey {
			t.Fatalf("%q is taken as %q", header, key)
		}
		if again, refused := idempotencyKey(&key, true); refused != nil || again != key {
			t.Fatalf("%q is %q the second time", key, again)
		}
	})
}

// A trace is passed on as it came or not at all.
func FuzzTraceparent(f *testing.F) {
	for _, s := range []string{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "", "00-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got := traceparent(header); got != "" && (got != header || strings.Trim(got, "0123456789abcdef-") != "") {
			t.Fatalf("%q becomes %q", header, got)
		}
	})
}

// Whose turn it is does not depend on how often it is asked, and a turn that is
// the user's keeps its words.
func FuzzRole(f *testing.F) {
	for _, s := range [][3]string{{"", "user: hi there", ""}, {"assistant", "hi", ""}, {"", "ai: x", "human@1"}, {"tool", ":", ""}, {"", "user:", "bot"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, role, text, speaker string) {
		said, plain := roleOf(role, text, speaker, nil)
		if said != "user" && said != "assistant" {
			t.Fatalf("%q", said)
		}
		if !strings.HasSuffix(strings.TrimSpace(text), strings.TrimSpace(plain)) {
			t.Fatalf("%q is read as %q", text, plain)
		}
	})
}
