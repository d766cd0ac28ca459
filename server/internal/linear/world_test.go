package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

// world is one history while it is made: servers that come and go, and clients.
type world struct {
	t       *testing.T
	hosts   hosts
	name    string
	tasks   []string // event ids, for runners
	history *history
	client  *http.Client
	scale   int
}

func (w *world) size(n int) int { return n * w.scale / 100 }

func (w *world) nap(d time.Duration) { _ = sched.Sleep(w.t.Context(), sched.Real(), d) }

// answer is one exchange. unsent says that no server was reached at all.
type answer struct {
	status   int
	replayed bool
	unsent   bool
	fields   map[string]any
}

func (a answer) text(name string) string { s, _ := a.fields[name].(string); return s }

func (a answer) number(name string) int { n, _ := a.fields[name].(float64); return int(n) }

func (a answer) credits() account {
	c, _ := a.fields["credits"].(map[string]any)
	at := func(name string) int { n, _ := c[name].(float64); return int(n) }
	return account{at("available"), at("reserved"), at("settled"), at("released")}
}

func (w *world) get(path string) answer { return w.call(http.MethodGet, path, "", "") }

func (w *world) post(key, body string) answer {
	return w.call(http.MethodPost, "/v1/memories", key, body)
}

func (w *world) redrive(id string) answer {
	return w.call(http.MethodPost, "/v1/operations/"+id+"/retry", "", "")
}

// step is one step of a runner.
func (w *world) step(do, task, token string) answer {
	return w.call(http.MethodPost, "/_runner/"+do+"?task="+url.QueryEscape(task)+"&token="+url.QueryEscape(token), "", "")
}

// call makes one request, once. What came back as an error of the server says as
// little as no answer.
func (w *world) call(method, path, key, body string) answer {
	base := w.hosts.url()
	if base == "" {
		w.nap(5 * time.Millisecond)
		return answer{unsent: true}
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		w.t.Error(err)
		return answer{unsent: true}
	}
	req.GetBody = nil // or the transport might send it twice
	req.Header.Set("Authorization", "Bearer "+fishMemKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var op *net.OpError
		w.nap(5 * time.Millisecond)
		return answer{unsent: errors.As(err, &op) && op.Op == "dial"}
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, replayed: resp.Header.Get("Idempotent-Replayed") == "true"}
	raw, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(raw, &a.fields) != nil || a.status >= 500 {
		return answer{}
	}
	return a
}

// scenario is one kind of history.
type scenario struct {
	name    string
	runners bool // the servers' own, or the clients play them
	tasks   int  // accepted before it begins
	clients int
	play    func(w *world, client int, rng *rand.Rand)
}

var scenarios = []scenario{
	{name: "accept", runners: true, clients: 6, play: acceptScenario},
	{name: "lease", tasks: 4, clients: 6, play: leaseScenario},
	{name: "credits", clients: 5, play: creditScenario},
}

// record makes one history: clients at work while servers are killed and come
// back.
func record(t *testing.T, h hosts, sc scenario, seed uint64, kills, scale int) *history {
	w := &world{t: t, hosts: h, name: sc.name + "-", scale: scale, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	defer w.client.CloseIdleConnections()
	for i := range sc.tasks {
		a := w.post(sc.name+string(rune('0'+i)), `{"user_id":"u","content":"My team ships releases every Thursday."}`)
		if a.text("event_id") == "" {
			t.Fatalf("%s: a task was not accepted: %+v", sc.name, a)
		}
		w.tasks = append(w.tasks, a.text("event_id"))
	}
	w.history = newHistory()
	var clients sync.WaitGroup
	for c := range sc.clients {
		clients.Go(func() { sc.play(w, c, rand.New(rand.NewPCG(seed, uint64(c)))) })
	}
	over := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 1<<32))
		for range kills {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(5+rng.IntN(60)) * time.Millisecond):
				h.kill(rng)
			}
		}
	})
	clients.Wait()
	close(over)
	killer.Wait()
	return w.history
}
