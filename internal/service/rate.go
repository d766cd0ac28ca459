package service

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Window is one rate limit: Limit calls in any Per.
type Window struct {
	Limit int
	Per   time.Duration
	Name  string // "per-minute", as the refusal names it
}

// FreeTier is what MemorySync's free plan allows a key.
func FreeTier() []Window {
	return []Window{{2, time.Second, "per-second"}, {30, time.Minute, "per-minute"}, {100, time.Hour, "per-hour"}}
}

// FishMemRate is what FishMem allows a key.
func FishMemRate() []Window { return []Window{{600, time.Minute, "per-minute"}} }

// maxCallers bounds the counters: the oldest caller is forgotten before a flood
// of unknown keys can take memory.
const maxCallers = 4096

// rates counts calls in sliding windows. The counts are this node's own: two
// nodes allow twice as much.
type rates struct {
	mu      sync.Mutex
	callers map[string]*callLog
}

type callLog struct {
	times []time.Time // of calls that were let through, oldest first
	last  time.Time
}

// take counts a call unless one of the windows is full; then it says which one
// and when there is room again. What is left of the tightest window is for the
// answer's headers.
func (r *rates) take(caller string, now time.Time, windows []Window) (full *Window, wait time.Duration, left int) {
	if len(windows) == 0 {
		return nil, 0, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.callers == nil {
		r.callers = map[string]*callLog{}
	}
	log := r.callers[caller]
	if log == nil {
		r.makeRoom()
		log = &callLog{}
		r.callers[caller] = log
	}
	log.last = now
	longest := time.Duration(0)
	for _, w := range windows {
		longest = max(longest, w.Per)
	}
	for len(log.times) > 0 && now.Sub(log.times[0]) >= longest {
		log.times = log.times[1:]
	}
	left = -1
	for i := range windows {
		w := &windows[i]
		used := 0
		for j := len(log.times) - 1; j >= 0 && now.Sub(log.times[j]) < w.Per; j-- {
			used++
		}
		if used >= w.Limit {
			oldest := log.times[len(log.times)-w.Limit]
			if d := oldest.Add(w.Per).Sub(now); full == nil || d > wait {
				full, wait = w, d
			}
		}
		if room := w.Limit - used - 1; left < 0 || room < left {
			left = room
		}
	}
	if full == nil {
		log.times = append(log.times, now)
	}
	return full, wait, max(left, 0)
}

func (r *rates) makeRoom() {
	if len(r.callers) < maxCallers {
		return
	}
	oldest := ""
	for id, log := range r.callers {
		if oldest == "" || log.last.Before(r.callers[oldest].last) {
			oldest = id
		}
	}
	delete(r.callers, oldest)
}

func (r *rates) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers = nil
}

// rateHeaders tells a caller its limit, refused or not.
func rateHeaders(h http.Header, on wire, windows []Window, left int) {
	if len(windows) == 0 {
		return
	}
	w := windows[0]
	for _, other := range windows {
		if other.Per > w.Per && other.Per <= time.Minute {
			w = other
		}
	}
	limit := strconv.Itoa(w.Limit)
	h.Set("X-RateLimit-Limit", limit)
	if on == fishMem {
		h.Set("RateLimit-Limit", limit)
		h.Set("RateLimit-Policy", limit+";w="+strconv.FormatInt(int64(w.Per/time.Second), 10))
		return
	}
	h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
}

// rateFailure is the refusal of a full window.
func rateFailure(on wire, full *Window, wait time.Duration) *failure {
	wait = max(wait, time.Second)
	if on == fishMem {
		f := fail(http.StatusTooManyRequests, "RATE_LIMITED", "too many requests")
		f.RetryAfter, f.HasRetry = full.Per, true // the live service always says 60
		return f
	}
	f := fail(http.StatusTooManyRequests, "RATE_LIMIT_EXCEEDED",
		"Rate limit exceeded ("+full.Name+"). Try again in "+strconv.FormatInt(seconds(wait), 10)+" seconds.")
	f.Shape, f.RetryAfter, f.HasRetry = shapeRate, wait, true
	return f
}

// limit counts the call. A caller without a key shares a bucket with its
// address, so that guessing keys is limited too.
func (s *Service) limit(w http.ResponseWriter, r *http.Request, c *call) *failure {
	windows := s.opts.MemorySyncRates
	secret := r.Header.Get(headerAPIKey)
	if c.wire == fishMem {
		windows, secret = s.opts.FishMemRates, bearer(r)
	}
	if len(windows) == 0 {
		return nil
	}
	caller := "addr:" + hostOf(r.RemoteAddr)
	if secret != "" {
		caller = NewKey(secret, "", "").id()
	}
	full, wait, left := s.rates.take(caller, s.sched.Now(), windows)
	rateHeaders(w.Header(), c.wire, windows, left)
	if full == nil {
		return nil
	}
	return rateFailure(c.wire, full, wait)
}

func hostOf(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i > 0 {
		return addr[:i]
	}
	return addr
}
