package memwrite

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// EventSource tells that events moved. It is a hint: a wait that hears of its
// event reads it, and looks by itself when it hears nothing.
type EventSource interface {
	// Listen calls f with the id of each event that moved, until stop. f does
	// not block.
	Listen(f func(eventID string)) (stop func())
}

// WebhookOptions settles a [WebhookHandler].
type WebhookOptions struct {
	WebhookVerifier
	// Handle is given every message once. An error answers 500, and the message
	// comes again: 5 times in about a quarter of an hour at the live service.
	// nil only tells who listens.
	Handle func(ctx context.Context, e WebhookEvent) error
	// MaxBody bounds a message in bytes; 1 MiB.
	MaxBody int64
	// Remember is how many handled messages are known by their ids, the newest;
	// 10,000. They are in memory: after a restart, or behind several processes,
	// a message may be given again, so Handle has to stand that.
	Remember int
}

// WebhookHandler receives FishMem's webhooks. It lets through what is signed,
// fresh and new: a message that is delivered again is answered 200 and given
// once; the very same request a second time, which no sender makes, is 409.
//
// It is the third way to learn what became of a write, beside waiting and
// polling: give it to [WithEventSource], and waits hear of their events. The
// live service sends none when a write FAILED, so waits go on looking.
type WebhookHandler struct {
	opts WebhookOptions

	mu      sync.Mutex
	handled map[string]bool // by id: true when handled, false while it is
	order   []string        // of the handled, oldest first
	played  map[string]bool // signatures that came and are still fresh
	fresh   []playedUntil   // the same, the first to expire first
	next    int
	listen  map[int]func(string)
}

// NewWebhookHandler makes a handler. Without a secret it is ErrInvalidInput.
func NewWebhookHandler(o WebhookOptions) (*WebhookHandler, error) {
	usable := false
	for _, s := range o.Secrets {
		usable = usable || s != ""
	}
	if !usable {
		return nil, invalid("NewWebhookHandler", "Secrets", "none is given: without one, anybody could send messages")
	}
	if o.Tolerance <= 0 {
		o.Tolerance = defaultTolerance
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 1 << 20
	}
	if o.Remember <= 0 {
		o.Remember = 10_000
	}
	return &WebhookHandler{opts: o, handled: map[string]bool{}, played: map[string]bool{}, listen: map[int]func(string){}}, nil
}

// Listen tells of the events of memory_add messages.
func (h *WebhookHandler) Listen(f func(eventID string)) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.next
	h.next++
	h.listen[n] = f
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listen, n)
	}
}

// ServeHTTP answers a delivery: 2xx when it is done with, and anything else when
// it should come again or never pass.
func (h *WebhookHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a webhook is a POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		http.Error(w, "the message is too large", http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the message did not arrive whole", http.StatusBadRequest)
		return
	}
	e, err := h.opts.Parse(r.Header, body)
	switch {
	case errors.Is(err, ErrWebhookMalformed):
		http.Error(w, "not a message", http.StatusBadRequest)
		return
	case err != nil:
		http.Error(w, "not signed, or not just now", http.StatusUnauthorized)
		return
	}
	signature := strings.ToLower(r.Header.Get("X-Fishmem-Signature"))
	switch h.begin(e.ID, signature) {
	case seenBefore:
		w.WriteHeader(http.StatusOK)
		return
	case playedAgain:
		http.Error(w, "this request was made before", http.StatusConflict)
		return
	case underWay:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the same message is being handled", http.StatusServiceUnavailable)
		return
	}
	ok := false
	defer func() { h.end(e.ID, signature, ok) }() // also when Handle panics
	if h.opts.Handle != nil {
		if err := h.opts.Handle(r.Context(), *e); err != nil {
			http.Error(w, "the message could not be handled", http.StatusInternalServerError)
			return
		}
	}
	ok = true
	if m, is := e.MemoryAdded(); is {
		h.tell(m.EventID)
	}
	w.WriteHeader(http.StatusOK)
}

// standing is what a message is to this handler.
type standing int

const (
	isNew standing = iota
	seenBefore
	playedAgain
	underWay
)

// begin claims a message, so that of two deliveries at once one is handled.
func (h *WebhookHandler) begin(id, signature string) standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	for len(h.fresh) > 0 && now.After(h.fresh[0].until) {
		delete(h.played, h.fresh[0].signature)
		h.fresh = h.fresh[1:]
	}
	if h.played[signature] {
		return playedAgain
	}
	done, known := h.handled[id]
	switch {
	case known && done:
		h.remember(signature, now)
		return seenBefore
	case known:
		return underWay
	}
	h.handled[id] = false
	return isNew
}

// end books what became of it. What was not handled may come again, also as the
// very same request.
func (h *WebhookHandler) end(id, signature string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok {
		delete(h.handled, id)
		return
	}
	h.handled[id] = true
	h.order = append(h.order, id)
	if len(h.order) > h.opts.Remember {
		delete(h.handled, h.order[0])
		h.order = h.order[1:]
	}
	h.remember(signature, h.opts.Now())
}

// remember keeps a signature for as long as its time is good. mu is held.
func (h *WebhookHandler) remember(signature string, now time.Time) {
	h.played[signature] = true
	h.fresh = append(h.fresh, playedUntil{signature, now.Add(2 * h.opts.Tolerance)})
}

type playedUntil struct {
	signature string
	until     time.Time
}

func (h *WebhookHandler) tell(eventID string) {
	h.mu.Lock()
	heard := make([]func(string), 0, len(h.listen))
	for _, f := range h.listen {
		heard = append(heard, f)
	}
	h.mu.Unlock()
	for _, f := range heard {
		f(eventID)
	}
}
