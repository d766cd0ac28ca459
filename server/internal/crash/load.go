//go:build unix

package crash

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// load is writers who send each write until it is accepted, through whatever
// happens to the servers.
type load struct {
	clients []*memwrite.Client
	last    atomic.Int64

	mu       sync.Mutex
	accepted map[int64]string // event ids of inferred writes; "" for the others, which end before they are answered
}

// writers is how many write at once; pace is how long each waits between two,
// so that there is not more to check than there is time for.
const (
	writers = 8
	pace    = 2 * time.Millisecond
)

func newLoad(urls []string) (*load, error) {
	l := &load{accepted: map[int64]string{}}
	for _, url := range urls {
		c, err := memwrite.New(memwrite.WithMemorySync(url, adderKey), memwrite.WithFishMem(url, writerKey),
			memwrite.WithHTTPClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}),
			memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: 10 * time.Millisecond, Cap: 100 * time.Millisecond, MaxTries: 20, TryTimeout: 5 * time.Second, NoBudget: true, NoGate: true}))
		if err != nil {
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	return l, nil
}

func (l *load) close() {
	for _, c := range l.clients {
		_ = c.Close()
	}
}

// run writes until ctx is done, and then ends what it has begun: a write that
// was sent and not answered is sent until it is.
func (l *load) run(ctx context.Context, finish context.Context) {
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for ctx.Err() == nil {
				n := l.last.Add(1)
				for try := 0; finish.Err() == nil; try++ {
					// Each try may go to another server.
					if l.write(finish, l.clients[(w+try)%len(l.clients)], n) == nil {
						break
					}
				}
				_ = sched.Sleep(ctx, sched.Real(), pace)
			}
		})
	}
	group.Wait()
}

// mark is in the text of write n and in no other.
func mark(n int64) string { return fmt.Sprintf("c%07d", n) }

// write makes write n, of one of three operations by its number. Every fifth is
// sent once more under the same name: a twin.
func (l *load) write(ctx context.Context, c *memwrite.Client, n int64) error {
	text := "I like the colour " + mark(n) + " best of all"
	ref := memwrite.NewRef("crash", mark(n))
	user := "user-" + mark(n)
	event := ""
	for range 1 + (n+1)%5/4 {
		var err error
		switch n % 3 {
		case 0:
			_, err = c.Add(ctx, memwrite.AddRequest{Text: text, EndUserID: user, Ref: ref})
		case 1:
			_, err = c.AddVerbatim(ctx, memwrite.InferRequest{Key: ref, Scope: memwrite.Scope{UserID: user}, Content: text})
		default:
			var r *memwrite.Receipt
			if r, err = c.AddAsync(ctx, memwrite.InferRequest{Key: ref, Scope: memwrite.Scope{UserID: user}, Content: text}); err == nil {
				event = r.EventID
			}
		}
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.accepted[n] = event
		l.mu.Unlock()
	}
	return nil
}

// settle waits until every inferred write that was accepted has come to its end.
func (l *load) settle(ctx context.Context) {
	l.mu.Lock()
	var events []string
	for _, id := range l.accepted {
		if id != "" {
			events = append(events, id)
		}
	}
	l.mu.Unlock()
	var group sync.WaitGroup
	var next atomic.Int64
	for range writers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(events) || ctx.Err() != nil {
					return
				}
				// Most have ended long ago, and waiting begins with a pause.
				// Whether one is stuck is read from the store afterwards.
				c := l.clients[i%len(l.clients)]
				if e, err := c.Event(ctx, events[i]); err != nil || !e.Status.Terminal() {
					_, _ = c.WaitForEvent(ctx, events[i])
				}
			}
		})
	}
	group.Wait()
}
