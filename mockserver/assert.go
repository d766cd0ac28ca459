package mockserver

import (
	"fmt"
	"slices"
	"strings"
)

// Match describes requests; empty fields match everything.
type Match struct {
	Route string // "METHOD /path"
	Key   string // client_ref, Idempotency-Key or the text of a turn
	Fault Kind   // struck by it
	Times int    // how many there shall be; 0 is at least one
}

func (m Match) fits(r Request) bool {
	return (m.Route == "" || m.Route == r.Route()) && (m.Key == "" || m.Key == r.Identity.String()) && (m.Fault == "" || m.Fault == r.Fault)
}

func (m Match) String() string {
	var parts []string
	for name, v := range map[string]string{"route": m.Route, "key": m.Key, "fault": string(m.Fault)} {
		if v != "" {
			parts = append(parts, fmt.Sprintf("%s %q", name, v))
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "any request"
	}
	return "a request with " + strings.Join(parts, ", ")
}

// Sent fails the test unless such requests reached the server: Times of them,
// or at least one. The failure lists the requests that were near.
func (s *Server) Sent(t TB, m Match) {
	t.Helper()
	n := s.count(m)
	if (m.Times == 0 && n > 0) || (m.Times > 0 && n == m.Times) {
		return
	}
	want := "at least 1"
	if m.Times > 0 {
		want = fmt.Sprint(m.Times)
	}
	t.Errorf("%s was sent %d times, want %s\n%s", m, n, want, s.near(m))
}

// NeverSent fails the test if such a request reached the server.
func (s *Server) NeverSent(t TB, m Match) {
	t.Helper()
	if n := s.count(m); n > 0 {
		t.Errorf("%s was sent %d times, want never\n%s", m, n, s.near(m))
	}
}

// StoredOnce fails the test unless the write with this identity made records
// in exactly one task, and no two of its records say the same.
func (s *Server) StoredOnce(t TB, key string) {
	t.Helper()
	made := 0
	texts := map[string]int{}
	for _, task := range s.TasksOf(key) {
		if task.Stored > 0 {
			made++
		}
		for _, r := range s.Records() {
			if r.TaskID == task.ID {
				texts[r.Text]++
			}
		}
	}
	for _, n := range texts {
		if n > 1 {
			t.Errorf("%q stored the same fact %d times\n%s", key, n, s.near(Match{Key: key}))
			return
		}
	}
	if made != 1 {
		t.Errorf("%q was stored by %d tasks, want 1\n%s%s", key, made, s.taskLines(key), s.near(Match{Key: key}))
	}
}

// ChargedOnce fails the test unless exactly one reservation of the writes with
// this identity was settled and none is open.
func (s *Server) ChargedOnce(t TB, key string) {
	t.Helper()
	var sum Ledger
	for _, task := range s.TasksOf(key) {
		l := s.ledgerOf(task.ID)
		sum.Settled += l.Settled
		sum.Open += l.Open
		sum.Released += l.Released
	}
	if sum.Settled != 1 || sum.Open != 0 {
		t.Errorf("%q: %d settled, %d released, %d open reservations, want 1 settled and 0 open\n%s%s",
			key, sum.Settled, sum.Released, sum.Open, s.taskLines(key), s.near(Match{Key: key}))
	}
}

func (s *Server) count(m Match) int {
	n := 0
	for _, r := range s.Journal() {
		if m.fits(r) {
			n++
		}
	}
	return n
}

// near is the requests most like the ones that were looked for, best first.
func (s *Server) near(m Match) string {
	type scored struct {
		r     Request
		score int
	}
	var list []scored
	for _, r := range s.Journal() {
		score := 0
		if m.Route != "" && r.Route() == m.Route {
			score += 2
		}
		if id := r.Identity.String(); m.Key != "" && id != "" {
			switch {
			case id == m.Key:
				score += 4
			case strings.Contains(id, m.Key), strings.Contains(m.Key, id), commonPrefix(id, m.Key) >= 4:
				score++
			}
		}
		list = append(list, scored{r, score})
	}
	slices.SortStableFunc(list, func(a, b scored) int { return b.score - a.score })
	if len(list) == 0 {
		return "  no request reached the server\n"
	}
	var out strings.Builder
	for i, e := range list {
		if i == 8 {
			fmt.Fprintf(&out, "  and %d more\n", len(list)-i)
			break
		}
		fmt.Fprintf(&out, "  %s\n", e.r.line())
	}
	return out.String() + s.taskStrikes(m.Key)
}

// taskStrikes is the last faults that struck tasks behind the requests.
func (s *Server) taskStrikes(key string) string {
	list := slices.DeleteFunc(s.Strikes(), func(k Strike) bool { return k.TaskID == "" || (key != "" && k.Key != "" && k.Key != key) })
	var out strings.Builder
	for _, k := range list[max(0, len(list)-8):] {
		fmt.Fprintf(&out, "  %s\n", k.line())
	}
	return out.String()
}

func (s *Server) taskLines(key string) string {
	var out strings.Builder
	for _, t := range s.TasksOf(key) {
		fmt.Fprintf(&out, "  task %s %s %s, %d attempts, %d records %s\n", t.ID, t.Operation, t.State, t.Attempts, t.Stored, t.Failure)
	}
	return out.String()
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
