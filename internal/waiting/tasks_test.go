package waiting

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

// life is the history of one task, written before it begins.
type life struct {
	born    time.Time
	changes []change // in order; the last one ends it
}

type change struct {
	at    time.Time
	state service.State
}

func (l *life) end() time.Time { return l.changes[len(l.changes)-1].at }

// extraction is how long an attempt takes: log-normal, median 1.2 s, sigma 0.8.
func extraction(r *rand.Rand) time.Duration {
	return time.Duration(1.2 * math.Exp(0.8*r.NormFloat64()) * float64(time.Second))
}

// newLife draws a task: 95 of 100 end after one extraction, the others fail
// once after one, back off for 60 to 120 s and end after another. claims adds
// the moments at which a runner takes the task, which a server may show as
// RUNNING: at once for the first attempt, since a runner is free, but never so
// early that nobody could have seen it PENDING.
func newLife(r *rand.Rand, now time.Time, claims bool) *life {
	l := &life{born: now}
	at := now
	then := func(d time.Duration, s service.State) {
		at = at.Add(d)
		l.changes = append(l.changes, change{at, s})
	}
	attempt := func(s service.State) {
		d := extraction(r)
		if claims {
			claim := min(10*time.Millisecond, d/2)
			then(claim, service.Running)
			d -= claim
		}
		then(d, s)
	}
	if r.Float64() < 0.05 {
		attempt(service.Retrying)
		at = at.Add(time.Minute + time.Duration(r.Float64()*float64(time.Minute)))
	}
	attempt(service.Succeeded)
	return l
}

// tasks plays lives as the server's backend. Only the parts of it that a wait
// reaches are there; the HTTP before it is the reference server's own.
type tasks struct {
	service.Backend
	sched  sched.Scheduler
	claims bool

	mu    sync.Mutex
	rand  *rand.Rand
	lives []*life // by id
}

func newTasks(s sched.Scheduler, seed uint64, claims bool) *tasks {
	return &tasks{sched: s, claims: claims, rand: rand.New(rand.NewPCG(seed, 4))}
}

// begin makes a task that starts now.
func (b *tasks) begin() (id string, l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l = newLife(b.rand, b.sched.Now(), b.claims)
	b.lives = append(b.lives, l)
	return strconv.Itoa(len(b.lives) - 1), l
}

// view is the task as it is now, and when it changes next.
func (b *tasks) view(id int, now time.Time) (t service.Task, next time.Time) {
	l := b.lives[id]
	t = service.Task{
		ID: strconv.Itoa(id), Operation: service.OpInfer, State: service.Pending,
		MaxAttempts: 5, CreatedAt: l.born, UpdatedAt: l.born,
	}
	for _, c := range l.changes {
		if c.at.After(now) {
			return t, c.at
		}
		t.State, t.UpdatedAt = c.state, c.at
		if c.state == service.Running {
			t.Attempts++
		}
	}
	t.CompletedAt = l.end()
	return t, time.Time{}
}

func (b *tasks) look(id string) (service.Task, time.Time, error) {
	n, err := strconv.Atoi(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || n < 0 || n >= len(b.lives) {
		return service.Task{}, time.Time{}, service.ErrNotFound
	}
	t, next := b.view(n, b.sched.Now())
	return t, next, nil
}

func (b *tasks) Task(_ context.Context, _, id string) (service.Task, error) {
	t, _, err := b.look(id)
	return t, err
}

func (b *tasks) Await(ctx context.Context, _, id string, wait time.Duration, done func(service.Task) bool) (service.Task, error) {
	deadline := b.sched.Now().Add(wait)
	for {
		t, next, err := b.look(id)
		now := b.sched.Now()
		if err != nil || done(t) || !now.Before(deadline) {
			return t, err
		}
		if next.IsZero() || next.After(deadline) {
			next = deadline
		}
		if err := sched.Sleep(ctx, b.sched, next.Sub(now)); err != nil {
			return t, err
		}
	}
}

// Tasks gives the first page, newest first; waits ask for no other.
func (b *tasks) Tasks(_ context.Context, _ string, _ service.State, page service.Page) ([]service.Task, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.sched.Now()
	var out []service.Task
	for id := len(b.lives) - 1; id >= 0 && len(out) < page.Limit; id-- {
		t, _ := b.view(id, now)
		out = append(out, t)
	}
	return out, nil
}
