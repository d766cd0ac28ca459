package workertest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/mockserver"
	"github.com/memwrite/memwrite-go/worker"
)

// Broker is what a drill needs of a broker. Its functions run in the process of
// the test, except Worker.
type Broker struct {
	Name string // on the line that Drill prints
	// Send puts one message into the queue.
	Send func(ctx context.Context, data []byte) error
	// Worker is the worker under test. It runs in processes of its own, until
	// ctx ends; then it drains.
	Worker func(ctx context.Context, client *memwrite.Client, cfg worker.Config) error
	// Dead gives every dead letter so far, copies of one record included.
	Dead func(ctx context.Context) ([]worker.DeadLetter, error)
	// InFlight counts the messages that are not settled.
	InFlight func(ctx context.Context) (int, error)

	Env     []string      // for the worker process: the names of this test's queue
	Config  worker.Config // what differs from the drill's short waits
	Records int           // 500 when MEMWRITE_DRILL=full, else 100
	Kills   int           // 5, else 2
	Limit   time.Duration // for all of it; 8 min
}

// Drill runs the broker's drill. See the package's documentation.
func Drill(t *testing.T, b Broker) {
	t.Helper()
	if Child() {
		child(t, b)
		return
	}
	if os.Getenv("MEMWRITE_DRILL") == "full" {
		orElse(&b.Records, 500)
		orElse(&b.Kills, 5)
	}
	orElse(&b.Records, 100)
	orElse(&b.Kills, 2)
	orElse(&b.Limit, 8*time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), b.Limit)
	defer cancel()
	d := &drill{t: t, b: b, ctx: ctx, srv: mockserver.Run(t), all: records(b.Records), count: filepath.Join(t.TempDir(), "count")}
	if err := os.WriteFile(d.count, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.run()
}

type drill struct {
	t     *testing.T
	b     Broker
	ctx   context.Context
	srv   *mockserver.Server
	all   []record
	seeds int // records that were there before
	count string
}

func (d *drill) run() {
	// Every text is a fact of its own, so that a near-duplicate hides nothing.
	d.srv.SetScript(func(text string) ([]mockserver.Fact, bool) { return []mockserver.Fact{{Text: text, Key: text}}, true })
	var err error
	if d.seeds, err = seed(d.ctx, d.srv, d.srv.Client(d.t), d.all); err != nil {
		d.t.Fatal(err)
	}
	for _, data := range copies(d.all, rand.New(rand.NewPCG(1, 2))) {
		if err := d.b.Send(d.ctx, data); err != nil {
			d.t.Fatal(err)
		}
	}
	d.trouble()
	poison := d.poison(3)
	good := 0
	for _, r := range d.all {
		if !r.dead {
			good++
		}
	}
	p := d.start()
	for i := range d.b.Kills {
		d.until(p, "records are stored", func() bool { return d.stored() >= good*(i+1)/(d.b.Kills+2) })
		switch i {
		case 1:
			d.outage(p, mockserver.ExhaustQuota)
		case d.b.Kills - 2:
			d.outage(p, mockserver.ExhaustCredits)
		}
		p.kill()
		p = d.start()
	}
	d.until(p, "everything but the poisoned records is stored", func() bool { return d.stored() >= good-len(poison) })
	for _, a := range poison {
		a.Disarm()
	}
	d.srv.Disarm()
	for round := 0; ; round++ {
		d.until(p, "nothing is in flight", func() bool { n, err := d.b.InFlight(d.ctx); return err == nil && n == 0 })
		if err := p.end(30 * time.Second); err != nil {
			d.t.Error(err)
		}
		// Not every broker tells of messages that are with a worker. Now they
		// are back.
		if n, err := d.b.InFlight(d.ctx); n == 0 && err == nil || round == 5 {
			break
		}
		p = d.start()
	}
	d.judge()
}

// trouble is what goes wrong all the time.
func (d *drill) trouble() {
	for i, f := range []mockserver.Fault{
		{Kind: mockserver.Status, Code: 503, Chance: 0.06},
		{Kind: mockserver.Status, Code: 429, RetryAfter: "1", Chance: 0.002},
		{Kind: mockserver.Reset, Chance: 0.03},
		{Kind: mockserver.DropResponse, Chance: 0.06},
		{Kind: mockserver.Truncate, Bytes: 7, Chance: 0.03},
		{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit, Chance: 0.03},
		{Kind: mockserver.LoseWakeup, Chance: 0.03},
		{Kind: mockserver.ProviderDown, Chance: 0.03},
	} {
		f.Times, f.Seed = -1, uint64(i+1)
		d.srv.Arm(f)
	}
}

// poison makes some records fail for as long as the others are not done.
func (d *drill) poison(n int) []*mockserver.Armed {
	var out []*mockserver.Armed
	for _, r := range d.all {
		if len(out) < n && !r.dead && r.key != r.text {
			out = append(out, d.srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 500, Times: -1, Key: r.key}))
		}
	}
	return out
}

// outage uses up a quota for several times the longest wait for a delivery.
func (d *drill) outage(p *process, kind mockserver.Kind) {
	a := d.srv.Arm(mockserver.Fault{Kind: kind, Times: -1})
	d.until(p, string(kind)+" struck", func() bool { return a.Fired() > 0 })
	_ = sched.Sleep(d.ctx, sched.Real(), 3*time.Second)
	a.Disarm()
}

func (d *drill) stored() int { return len(d.srv.Records()) - d.seeds }

// until waits for something to become true, as long as the worker lives.
func (d *drill) until(p *process, what string, done func() bool) {
	d.t.Helper()
	for !done() {
		select {
		case err := <-p.gone:
			d.t.Fatalf("the worker process ended before %s: %v", what, err)
		default:
		}
		if sched.Sleep(d.ctx, sched.Real(), 20*time.Millisecond) != nil {
			n, err := d.b.InFlight(context.WithoutCancel(d.ctx))
			fmt.Printf("broker=%s stored=%d in_flight=%d short=%q\n", d.b.Name, d.stored(), n, what)
			d.t.Fatalf("%v passed before %s; in flight: %d, %v; the worker said at last:\n%s", d.b.Limit, what, n, err, p.log)
		}
	}
}

// judge counts from the server's records and the broker's dead letters.
func (d *drill) judge() {
	t := d.t
	found := map[string]int{}
	for _, r := range d.srv.Records() {
		found[r.Text]++
	}
	letters, err := d.b.Dead(d.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var stored, duplicates, lost, dead int
	for _, r := range d.all {
		n := found[r.text]
		letter := slices.ContainsFunc(letters, func(l worker.DeadLetter) bool { return bytes.Equal(l.Data(), r.data) })
		switch {
		case r.dead && n == 0 && letter:
			dead++
		case r.dead:
			t.Errorf("%s must be dead: %d memories, dead letter %v", r.key, n, letter)
		case letter:
			t.Errorf("%s must not be dead", r.key)
		case n == 0:
			lost++
			t.Errorf("%s is lost", r.key)
		default:
			stored++
			duplicates += n - 1
		}
	}
	for _, l := range letters {
		if !slices.ContainsFunc(d.all, func(r record) bool { return bytes.Equal(l.Data(), r.data) }) {
			t.Errorf("a dead letter of no record: %+v", l)
		}
	}
	if duplicates > 0 {
		t.Errorf("%d duplicates", duplicates)
	}
	if err := d.srv.Check(); err != nil {
		t.Error(err)
	}
	if l := d.srv.Ledger(); l.Open != 0 || !l.Balanced {
		t.Errorf("ledger %+v", l)
	}
	var delivered int64
	if info, err := os.Stat(d.count); err == nil {
		delivered = info.Size()
	}
	if left, err := d.b.InFlight(d.ctx); err != nil || left != 0 {
		t.Errorf("%d in flight, %v", left, err)
	}
	verdict := ""
	if t.Failed() {
		verdict = " short"
	}
	fmt.Printf("broker=%s delivered=%d stored=%d duplicates=%d lost=%d dead=%d%s\n", d.b.Name, delivered, stored, duplicates, lost, dead, verdict)
}
