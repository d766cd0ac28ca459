package webhook

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Target is where the messages of a workspace go, and the secret they are
// signed with.
type Target struct {
	URL    string
	Secret string
}

// Config is what a sender is made of. Store and Scheduler are needed; zero takes
// the default of the rest.
type Config struct {
	// Store is the one of this moment: it may be replaced under a sender.
	Store     func() protocol.Store
	Scheduler sched.Scheduler
	HTTP      *http.Client
	Attempts  int              // at one message; 5
	BackOff   protocol.BackOff // 1 min doubling to 1 h
	Every     time.Duration    // between looks that nothing asked for; 5 s
	Timeout   time.Duration    // of one attempt; 10 s
	Again     time.Duration    // how much of the past is told again at a start; 10 min
	Workers   int              // attempts under way at once; 4
	OnError   func(error)      // of the store; the sender goes on
	// OnAttempt hears how each attempt ended, after it was booked; one that a
	// Close cut short is none. It must not block.
	OnAttempt func(Attempt)
}

// maxWaiting bounds the messages that wait for a subscriber: above it, the rest
// stays in the store's transitions.
const maxWaiting = 10_000

// maxKept bounds the ended deliveries that can be looked at.
const maxKept = 1_000

// Sender tells subscribers. It is safe for concurrent use.
type Sender struct {
	cfg  Config
	wake chan struct{}

	mu      sync.Mutex
	targets map[string]Target
	at      map[string]int64 // position in each workspace's transitions that was read
	waiting []*delivery
	ended   []Delivery
	busy    int
	epoch   int // grows when everything is forgotten
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
}

// New makes a sender; Start lets it run.
func New(c Config) *Sender {
	c.Attempts = cmp.Or(c.Attempts, 5)
	c.BackOff.Base = cmp.Or(c.BackOff.Base, time.Minute)
	c.BackOff.Cap = cmp.Or(c.BackOff.Cap, time.Hour)
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Again = cmp.Or(c.Again, 10*time.Minute)
	c.Workers = cmp.Or(c.Workers, 4)
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	plain := *c.HTTP
	// A redirect would carry a signed message to whoever the subscriber names.
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.HTTP = &plain
	s := &Sender{cfg: c, wake: make(chan struct{}, 1), targets: map[string]Target{}, at: map[string]int64{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start begins to tell.
func (s *Sender) Start() {
	s.group.Add(1)
	s.cfg.Scheduler.Go(func() { defer s.group.Done(); s.loop() })
}

// Close ends what is under way and waits for it. What was not told is told
// after the next start, if that is soon. A second call does nothing.
func (s *Sender) Close() {
	s.cancel()
	s.group.Wait()
	s.cfg.HTTP.CloseIdleConnections()
}

// Set lets the messages of a workspace go to a target from now on; one without
// a URL ends them.
func (s *Sender) Set(workspace string, t Target) {
	s.mu.Lock()
	if t.URL == "" {
		delete(s.targets, workspace)
		delete(s.at, workspace)
	} else {
		s.targets[workspace] = t
	}
	s.mu.Unlock()
	s.Nudge()
}

// Nudge says that there may be something to tell. It does not block.
func (s *Sender) Nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Forget drops everything that was read and waits, as when the store is
// replaced. Targets stay.
func (s *Sender) Forget() {
	s.mu.Lock()
	s.at, s.waiting, s.ended = map[string]int64{}, nil, nil
	s.epoch++
	s.mu.Unlock()
	s.Nudge()
}

func (s *Sender) loop() {
	for s.ctx.Err() == nil {
		if err := s.read(); err != nil && s.ctx.Err() == nil && s.cfg.OnError != nil {
			s.cfg.OnError(err)
		}
		wait := s.dispatch()
		_ = s.cfg.Scheduler.Wait(s.ctx, wait, s.wake) // whatever ends it, there is a look
	}
}

// dispatch begins the attempts that are due, and says how long until the next.
func (s *Sender) dispatch() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Scheduler.Now()
	wait := s.cfg.Every
	for _, d := range s.waiting {
		if d.busy {
			continue
		}
		if left := d.Next.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		if s.busy >= s.cfg.Workers {
			continue // one that ends wakes the loop
		}
		target, ok := s.targets[d.Workspace]
		if !ok {
			continue
		}
		s.busy++
		d.busy = true
		d.Attempts++
		s.group.Add(1)
		epoch := s.epoch
		s.cfg.Scheduler.Go(func() {
			defer s.group.Done()
			status, err := s.post(target, d)
			if now, counts := s.done(d, status, epoch); counts && s.cfg.OnAttempt != nil {
				s.cfg.OnAttempt(Attempt{Delivery: now, Host: hostOf(target.URL), Most: s.cfg.Attempts, Err: err})
			}
		})
	}
	return max(wait, time.Millisecond)
}

// post makes one attempt and gives the status of its answer, 0 when none came.
func (s *Sender) post(t Target, d *delivery) (int, error) {
	ctx, cancel := s.cfg.Scheduler.WithTimeout(s.ctx, s.cfg.Timeout, nil)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(d.body))
	if err != nil {
		return 0, errURL
	}
	req.GetBody = nil // an attempt is one request
	sign(req.Header, t.Secret, d.ID, d.Type, d.body, s.cfg.Scheduler.Now())
	resp, err := s.cfg.HTTP.Do(req)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// done books an attempt: told, to be tried again, or given up. It gives the
// delivery as it is now, and whether the attempt counts.
func (s *Sender) done(d *delivery, status, epoch int) (Delivery, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	defer s.Nudge()
	if s.epoch != epoch {
		return Delivery{}, false
	}
	d.busy = false
	d.Status = status
	switch {
	case status >= 200 && status < 300:
		d.State = Told
	case s.ctx.Err() != nil:
		d.Attempts-- // it was not the subscriber's fault
		return Delivery{}, false
	case d.Attempts >= s.cfg.Attempts:
		d.State = GivenUp
	default:
		d.Next = s.cfg.Scheduler.Now().Add(s.cfg.BackOff.After(d.Attempts, sched.Float64(s.cfg.Scheduler)))
		return d.Delivery, true
	}
	for i, other := range s.waiting {
		if other == d {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			break
		}
	}
	s.ended = append(s.ended, d.Delivery)
	if len(s.ended) > maxKept {
		s.ended = s.ended[len(s.ended)-maxKept:]
	}
	return d.Delivery, true
}
