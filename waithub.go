package memwrite

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// All polls of one client's waits together keep below 300 a minute: 4.8 a
// second and a burst of 12. The service counts 600 requests a minute for a
// key, polls among them, and writes need the other half.
const (
	pollEvery  = time.Second * 10 / 48
	pollBurst  = 12
	agedEvery  = 600 * time.Millisecond
	listFrom   = 4 // from so many waits on, one page of events serves them all
	probeLimit = listFrom - 1
	pageTime   = 5 * time.Second // that reading a page may take, while others wait for it
	pageRest   = time.Minute     // after a page that failed, until the next is tried
	cutsToPoll = 3               // held requests cut in a row before no wait asks for one
	cutRest    = 10 * time.Minute
)

// waitHub is what the waits of one client share: what is known about the
// server, the budget of polls, and the page of events read for all of them.
type waitHub struct {
	client *Client

	mu      sync.Mutex
	seats   map[*seat]struct{}
	mode    holdMode
	asking  int       // reads in flight while the mode is not known
	noList  bool      // the key may not list
	badPage time.Time // when the last page failed that may be whole another time
	cuts    int       // held requests cut in a row
	lastCut time.Time
	listing bool      // a page is being read
	listed  time.Time // when the last page came
	credit  time.Time // when the polls made so far are paid for

	agedCredit time.Time // the same for events that are too old for the page

	told bool // an event source tells of events; set before the first wait
}

// holdMode is whether the server holds a request that prefers it.
type holdMode int

const (
	holdUnknown holdMode = iota
	holds
	pollsOnly
)

// seat is a wait's place in the hub. Others leave an event here and wake it.
type seat struct {
	id   string
	wake chan struct{}
	mail *Event // guarded by the hub's mu
	aged bool   // too old for the page of newest events; guarded by the hub's mu
	told bool   // a source said that the event moved; guarded by the hub's mu
}

func (h *waitHub) init(c *Client) {
	h.client = c
	h.seats = map[*seat]struct{}{}
}

func (h *waitHub) join(id string) *seat {
	s := &seat{id: id, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	h.seats[s] = struct{}{}
	h.mu.Unlock()
	return s
}

func (h *waitHub) leave(s *seat) {
	h.mu.Lock()
	delete(h.seats, s)
	h.mu.Unlock()
}

// notify wakes the waits of an event that a source says has moved.
func (h *waitHub) notify(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.seats {
		if s.id != id {
			continue
		}
		s.told = true
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// look sees the event once, in the way that is cheapest for the server.
func (w *waiting) look(ctx context.Context) (sight, error) {
	h := &w.client.waits
	for {
		h.mu.Lock()
		if ev := w.seat.mail; ev != nil {
			w.seat.mail = nil
			h.mu.Unlock()
			return sight{event: ev, same: ev.Status == w.status}, nil
		}
		// An event that a page has missed was there before all of those on it:
		// no later page has it, so its wait asks for it alone from then on.
		// One that moved is read alone too: a page has a hundred that did not.
		now := h.client.sched.Now()
		if h.mode == pollsOnly && h.cuts >= cutsToPoll && now.Sub(h.lastCut) >= cutRest {
			h.mode, h.cuts = holdUnknown, 0
		}
		listed := len(h.seats) >= listFrom && !h.noList && (h.badPage.IsZero() || now.Sub(h.badPage) >= pageRest)
		mode, many := h.mode, listed && !w.seat.aged && !w.seat.told
		w.seat.told = false
		// While nobody knows the server's manners, a few reads find out.
		crowded := mode == holdUnknown && many && h.asking >= probeLimit
		busy := mode == pollsOnly && many && (h.listing || now.Sub(h.listed) < minPoll)
		lead := mode == pollsOnly && many && !busy
		if lead {
			h.listing = true
		} else if mode == holdUnknown && !crowded {
			h.asking++
		}
		h.mu.Unlock()
		switch {
		case crowded, busy:
			if err := sched.Sleep(ctx, w.client.sched, 0); err != nil {
				return sight{}, err
			}
			if err := w.client.sched.Wait(ctx, minPoll, w.seat.wake); err != nil && ctx.Err() != nil {
				return sight{}, err
			}
			continue
		case lead:
			found, err := h.readPage(ctx)
			if err != nil || !found[w.seat.id] {
				return w.read(ctx, pollsOnly) // too old for the page, or the page is broken
			}
			continue
		}
		if mode == holdUnknown {
			defer func() {
				h.mu.Lock()
				h.asking--
				h.mu.Unlock()
			}()
		}
		return w.read(ctx, mode)
	}
}

// read asks for the one event.
func (w *waiting) read(ctx context.Context, mode holdMode) (sight, error) {
	c, h := w.client, &w.client.waits
	prefer := ""
	if mode != pollsOnly && w.quick <= maxQuick && !w.receipt.Status.Terminal() {
		if s := int(min(holdFor, c.held-holdSlack) / time.Second); s >= 1 {
			prefer = "wait=" + strconv.Itoa(s)
		}
	}
	if mode != holds || prefer == "" {
		if err := h.queue(ctx, w.seat); err != nil {
			return sight{}, err
		}
		if err := h.pay(ctx); err != nil {
			return sight{}, err
		}
	}
	begin := c.sched.Now()
	ev, a, err := c.event(ctx, w.op, w.seat.id, prefer)
	if err != nil {
		if prefer != "" && ctx.Err() == nil && kindOfError(err) == KindUnknownOutcome {
			w.quick = neverHold
			h.cut()
		}
		return sight{}, err
	}
	s := sight{event: ev, took: c.sched.Now().Sub(begin), same: w.last != nil && ev.Status == w.status}
	s.hint = judge(a.Answer, c.sched.Now()).hint
	s.held = a.Header.Get("Preference-Applied") != ""
	if prefer != "" && !ev.Status.Terminal() {
		h.mu.Lock()
		if s.held {
			h.mode, h.cuts = holds, 0
		} else {
			h.mode = pollsOnly
		}
		h.mu.Unlock()
	}
	return s, nil
}

// cut notes that a held request was cut, by a proxy that lets none take so long
// say. One cut may be chance; after three in a row the server is polled, for ten
// minutes.
func (h *waitHub) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cuts++
	h.lastCut = h.client.sched.Now()
	if h.cuts >= cutsToPoll {
		h.mode = pollsOnly
	}
}

// readPage reads the newest events for every wait of the client and wakes those
// it found. It tells which ids were there. It has one try: the reads by id are
// there when it fails, and a page that is broken for a while, as by one event
// that the service cannot show, must not cost the retries of the writes.
func (h *waitHub) readPage(ctx context.Context) (map[string]bool, error) {
	c := h.client
	defer func() { // also when an observer panics: the other waits count on the next page
		h.mu.Lock()
		h.listing, h.listed = false, c.sched.Now()
		h.mu.Unlock()
	}()
	err := h.pay(ctx)
	var page []Event
	if err == nil {
		page, _, err = c.eventPage(ctx, "WaitForEvent", EventFilter{}, "", pageTime)
	}
	found := make(map[string]bool, len(page))
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if k := kindOfError(err); k == KindForbidden || k == KindUnauthorized || k == KindNotFound || k == KindUnsupported || k == KindRefused {
			h.noList = true
		} else if ctx.Err() == nil {
			h.badPage = c.sched.Now()
		}
		return nil, err
	}
	byID := make(map[string]*Event, len(page))
	for i := range page {
		byID[page[i].ID] = &page[i]
		found[page[i].ID] = true
	}
	for s := range h.seats {
		if ev := byID[s.id]; ev != nil {
			copied := *ev
			s.mail = &copied
		} else {
			s.aged = true
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	return found, nil
}

// queue lets the waits whose event is too old for the page ask at most every
// agedEvery, so that they leave the budget its pages: a page serves a hundred
// waits and one of them only itself.
func (h *waitHub) queue(ctx context.Context, s *seat) error {
	h.mu.Lock()
	if !s.aged {
		h.mu.Unlock()
		return nil
	}
	now := h.client.sched.Now()
	return h.take(ctx, &h.agedCredit, now, agedEvery, 1)
}

// pay waits until the shared budget has room for one poll.
func (h *waitHub) pay(ctx context.Context) error {
	h.mu.Lock()
	return h.take(ctx, &h.credit, h.client.sched.Now(), pollEvery, pollBurst)
}

// take books one poll and waits for its turn. It is called with mu held and
// gives it back.
func (h *waitHub) take(ctx context.Context, credit *time.Time, now time.Time, every time.Duration, burst int) error {
	if floor := now.Add(-time.Duration(burst) * every); credit.Before(floor) {
		*credit = floor
	}
	*credit = credit.Add(every)
	wait := credit.Sub(now)
	h.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	err := sched.Sleep(ctx, h.client.sched, wait)
	if err != nil { // the poll is not made, so it costs the other waits nothing
		h.mu.Lock()
		*credit = credit.Add(-every)
		h.mu.Unlock()
	}
	return err
}

func kindOfError(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return KindUnknown
}
