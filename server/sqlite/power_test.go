package sqlite_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/disk"
	"github.com/memwrite/memwrite-go/server/sqlite"
)

// power knows what of a database would be there if the power went now: of each
// file what it was at its last sync, and of what was written since any part.
type power struct {
	mu     sync.Mutex
	random *rand.Rand
	synced map[string][]byte // by the path
	done   map[string]bool   // tasks that were answered
	images []image
}

// image is what is found when the power is back, and what has to be in it.
type image struct {
	files map[string][]byte // by the end of the name
	done  map[string]bool
}

// sector is what a disk writes as a whole.
const sector = 512

func contents(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	return raw
}

// cut takes an image: all that was written is there, or nothing that was not
// synced, or each sector as chance has it. It is called while nobody writes.
func (p *power) cut(t *testing.T, db string) {
	t.Helper()
	im := image{map[string][]byte{}, maps.Clone(p.done)}
	for _, suffix := range []string{"", "-wal"} {
		was, is := p.synced[db+suffix], contents(t, db+suffix)
		mixed := append([]byte(nil), is...)
		lost := p.random.IntN(3) // of two sectors
		for at := 0; at < max(len(was), len(is)); at += sector {
			if p.random.IntN(2) >= lost {
				continue
			}
			for len(mixed) < min(at+sector, len(was)) {
				mixed = append(mixed, 0)
			}
			if at < len(was) {
				copy(mixed[at:], was[at:min(at+sector, len(was))])
			} else {
				clear(mixed[at:min(at+sector, len(mixed))])
			}
		}
		im.files[suffix] = mixed
	}
	p.images = append(p.images, im)
}

// Many write, some of it much, the log is folded in now and then, and the power
// goes at any write or sync. Whatever was answered by then is there.
func TestWhatWasAnsweredIsThereAfterThePowerWent(t *testing.T) {
	t.Parallel()
	s, d := onDisk(t)
	ctx, db := t.Context(), sqlite.Path(s)
	if err := s.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	p := &power{random: rand.New(rand.NewPCG(3, 4)), done: map[string]bool{}, synced: map[string][]byte{db: contents(t, db), db + "-wal": contents(t, db+"-wal")}}
	d.Fail(func(op disk.Op, path string) int32 {
		if !strings.HasPrefix(path, db) {
			return disk.OK
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.images) < 120 && p.random.IntN(4) == 0 {
			p.cut(t, db)
		}
		if op == disk.Sync { // nobody is answered before it has been
			p.synced[path] = contents(t, path)
		}
		return disk.OK
	})
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 40 {
				key := fmt.Sprint("c", c, "-", i)
				a := proposal(key)
				if i%7 == 3 {
					a = proposal(fmt.Sprint("c", c, "-", i-1)) // a twin
				}
				got, _, err := s.Accept(ctx, a)
				if err != nil {
					t.Error(err)
					return
				}
				if i%5 == 0 {
					carry(t, s, got, strings.Repeat("fact ", 2000), noon)
				}
				p.mu.Lock()
				p.done[got.ID] = true
				p.mu.Unlock()
				if i%20 == 0 {
					_ = s.Checkpoint(ctx)
				}
			}
		})
	}
	wg.Wait()
	d.Fail(nil)
	if len(p.images) < 50 {
		t.Errorf("the power went %d times", len(p.images))
	}
	for i, im := range p.images {
		path := filepath.Join(t.TempDir(), "cut.db")
		for suffix, raw := range im.files {
			if err := os.WriteFile(path+suffix, raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := sqlite.Open(ctx, path, sqlite.Options{})
		if err != nil {
			t.Errorf("image %d: %v", i, err)
			continue
		}
		snap, err := again.Snapshot(ctx)
		if err == nil {
			err = protocol.Check(snap)
		}
		if err != nil {
			t.Errorf("image %d: %v", i, err)
		}
		for _, task := range snap.Tasks {
			delete(im.done, task.ID)
		}
		if len(im.done) > 0 {
			t.Errorf("image %d: %d of what was answered are lost", i, len(im.done))
		}
		_ = again.Close()
	}
}
