package vector

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/philippgille/chromem-go"

	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// version names the folder of vectors that are made alike.
var version = fmt.Sprintf("v%d", extract.EmbedVersion)

// slack is more than the library's sums in single precision are off.
const slack = 1e-4

// Index is a protocol.Projector and a protocol.Searcher for one process. Each
// end user, agent and run has vectors of its own, so that a search takes as long
// as its owner has records. It keeps ids, scopes and vectors and no text.
type Index struct {
	dir string // none: in memory alone

	mu     sync.RWMutex
	owners map[string]*chromem.Collection
	held   map[string][]string // owners by record
}

var (
	_ protocol.Projector = (*Index)(nil)
	_ protocol.Searcher  = (*Index)(nil)
)

// Open reads the index of a folder, which is made when it is not there. What
// cannot be read is dropped; Reconcile puts it back.
func Open(ctx context.Context, dir string) (*Index, error) {
	x := New()
	x.dir = filepath.Join(dir, version)
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return nil, fmt.Errorf("vector: %w", err)
	}
	found, err := os.ReadDir(x.dir)
	if err != nil {
		return nil, fmt.Errorf("vector: %w", err)
	}
	for _, f := range found {
		if err := x.load(ctx, f.Name()); err != nil {
			if err := os.RemoveAll(filepath.Join(x.dir, f.Name())); err != nil {
				return nil, fmt.Errorf("vector: %w", err)
			}
		}
	}
	return x, nil
}

// New is an empty index in memory alone.
func New() *Index {
	return &Index{owners: map[string]*chromem.Collection{}, held: map[string][]string{}}
}

// Discard throws the index of a folder away. A second call does nothing. The
// folder must not be open.
func Discard(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("vector: %w", err)
	}
	return nil
}

func (x *Index) load(ctx context.Context, owner string) error {
	c, err := x.collection(owner)
	if err != nil {
		return err
	}
	all, err := query(ctx, c, append(make([]float32, extract.Dimensions-1), 1), c.Count(), nil)
	if err != nil {
		delete(x.owners, owner)
		return err
	}
	for _, r := range all {
		x.held[r.ID] = append(x.held[r.ID], owner)
	}
	return nil
}

// collection is called with mu held, or before anybody else has the index. The
// library names files by 32 bits of a hash: an owner has a folder to itself, so
// that it shares them with nobody.
func (x *Index) collection(owner string) (*chromem.Collection, error) {
	if c := x.owners[owner]; c != nil {
		return c, nil
	}
	db, err := chromem.NewDB(), error(nil)
	if x.dir != "" {
		db, err = chromem.NewPersistentDB(filepath.Join(x.dir, owner), false)
	}
	if err != nil {
		return nil, err
	}
	c, err := db.GetOrCreateCollection("records", nil, unasked)
	if err == nil {
		x.owners[owner] = c
	}
	return c, err
}

// unasked is there because without it the library would ask a service on the
// network for a vector it was not given.
func unasked(context.Context, string) ([]float32, error) {
	return nil, errors.New("vector: every record comes with its vector")
}

// query is QueryEmbedding where there may be fewer than n.
func query(ctx context.Context, c *chromem.Collection, v []float32, n int, where map[string]string) ([]chromem.Result, error) {
	if n = min(n, c.Count()); n == 0 {
		return nil, nil
	}
	return c.QueryEmbedding(ctx, v, n, where, nil)
}

// Project takes records in that are not there yet and takes forgotten ones out.
// A text without any meaning is near to nothing and is not kept.
func (x *Index) Project(ctx context.Context, rs []protocol.Record) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range rs {
		r := &rs[i]
		var err error
		if r.Forgotten {
			err = x.remove(ctx, r.ID)
		} else {
			err = x.add(ctx, r)
		}
		if err != nil {
			return fmt.Errorf("vector: record %s: %w", r.ID, err)
		}
	}
	return nil
}

// add goes on where a former one that failed, or a process that died, stood.
func (x *Index) add(ctx context.Context, r *protocol.Record) error {
	var v []float32
	for _, owner := range ownersOf(r.Workspace, r.Wire, r.Scope) {
		if slices.Contains(x.held[r.ID], owner) {
			continue
		}
		if v == nil {
			v = extract.Embed(r.Text)
		}
		if extract.Score(v, v) == 0 {
			return nil
		}
		c, err := x.collection(owner)
		if err != nil {
			return err
		}
		if err := c.AddDocument(ctx, chromem.Document{ID: r.ID, Embedding: v, Metadata: names(r.Scope)}); err != nil {
			return errors.Join(err, c.Delete(ctx, nil, nil, r.ID)) // it may be in memory alone
		}
		x.held[r.ID] = append(x.held[r.ID], owner)
	}
	return nil
}

func (x *Index) remove(ctx context.Context, id string) error {
	for _, owner := range x.held[id] {
		if err := x.owners[owner].Delete(ctx, nil, nil, id); err != nil {
			return err
		}
	}
	delete(x.held, id)
	return nil
}

// Nearest is protocol.Searcher.
func (x *Index) Nearest(ctx context.Context, q protocol.RecordQuery, text string, n int) (near []protocol.Near, rest float64, err error) {
	v := extract.Embed(text)
	owners := ownersOf(q.Workspace, q.Wire, q.Scope)
	if extract.Score(v, v) == 0 || len(owners) == 0 {
		return nil, 0, nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.owners[owners[0]]
	if c == nil {
		return nil, 0, nil
	}
	found, err := query(ctx, c, v, n, names(q.Scope))
	if err != nil {
		return nil, 0, fmt.Errorf("vector: %w", err)
	}
	for _, f := range found {
		if s := extract.Score(v, f.Embedding); s > 0 {
			near = append(near, protocol.Near{ID: f.ID, Score: s})
		}
	}
	if len(found) == n && n < c.Count() {
		rest = max(float64(found[n-1].Similarity), 0) + slack
	}
	return near, rest, nil
}

// Len is how many records the index holds.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.held)
}

// Reconcile makes the index hold exactly the records that each gives, which
// should be all that are live and nothing else: what is missing is added, what
// is left over goes. Nothing may be forgotten meanwhile. A second call changes
// nothing.
func (x *Index) Reconcile(ctx context.Context, each func(func(protocol.Record) error) error) error {
	live := map[string]bool{}
	err := each(func(r protocol.Record) error {
		live[r.ID] = true
		return x.Project(ctx, []protocol.Record{r})
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range x.held {
		if !live[id] {
			if err := x.remove(ctx, id); err != nil {
				return fmt.Errorf("vector: record %s: %w", id, err)
			}
		}
	}
	return nil
}
