package vector_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/server/vector"
)

// others are records as other processes write them: each change has the next
// number.
type others struct {
	mu       sync.Mutex
	changes  []protocol.Record
	rebuilds int64
	fails    error
	read     int // records that were given
}

func (o *others) write(rs ...protocol.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = append(o.changes, rs...)
}

func (o *others) Changed(_ context.Context, since uint64, f func(protocol.Record) error) (uint64, int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for n := since; n < uint64(len(o.changes)); n++ {
		o.read++
		if err := f(o.changes[n]); err != nil {
			return 0, 0, err
		}
	}
	return uint64(len(o.changes)), o.rebuilds, o.fails
}

func (o *others) EachLive(_ context.Context, _ time.Time, f func(protocol.Record) error) error {
	_, _, err := o.Changed(context.Background(), 0, f)
	return err
}

func followed(t *testing.T, o *others) *vector.Followed {
	t.Helper()
	x, err := vector.Follow(t.Context(), o, sched.Real(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func holds(t *testing.T, x *vector.Followed) (ids []string) {
	t.Helper()
	near, _, err := x.Nearest(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range near {
		ids = append(ids, n.ID)
	}
	return ids
}

func TestASearchKnowsWhatOthersWrote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &others{}
		o.write(note("a", "sam", "drinks tea"))
		x := followed(t, o)
		defer x.Close()
		if got := holds(t, x); len(got) != 1 {
			t.Errorf("finds %v of what was there", got)
		}
		b := note("b", "sam", "likes tea")
		o.write(b)
		if got := holds(t, x); len(got) != 2 {
			t.Errorf("finds %v after another wrote", got)
		}
		o.write(b.Forget(time.Now()))
		time.Sleep(1100 * time.Millisecond) // nobody searches
		if x.Len() != 1 {
			t.Errorf("%d records a second after another forgot one", x.Len())
		}
		read := o.read
		for range 3 {
			holds(t, x)
		}
		if o.read != read {
			t.Error("a search reads again what was read")
		}
	})
}

func TestAnIndexThatWasToldToIsMadeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &others{}
		o.write(note("a", "sam", "drinks tea"))
		x := followed(t, o)
		defer x.Close()
		if err := x.Project(t.Context(), []protocol.Record{note("none", "sam", "no such tea")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if x.Len() != 2 {
			t.Errorf("%d records before", x.Len())
		}
		o.mu.Lock()
		o.rebuilds++
		o.mu.Unlock()
		if len(holds(t, x)) != 2 {
			t.Error("a search waits for the new index")
		}
		time.Sleep(1100 * time.Millisecond)
		if got := holds(t, x); len(got) != 1 || got[0] != "a" {
			t.Errorf("finds %v", got)
		}
	})
}

func TestASearchSaysThatItMayLackSomething(t *testing.T) {
	t.Parallel()
	o := &others{}
	x := followed(t, o)
	defer x.Close()
	o.mu.Lock()
	o.fails = errors.New("no answer")
	o.mu.Unlock()
	if _, _, err := x.Nearest(t.Context(), protocol.RecordQuery{Workspace: "w", Wire: protocol.FishMem, Scope: sam}, "tea", 10); !errors.Is(err, o.fails) {
		t.Errorf("got %v", err)
	}
}
