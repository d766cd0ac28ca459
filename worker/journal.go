package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// Journal is a Watcher that keeps accepted writes in a file, waits for each to
// end, and hands over those that FAILED. One process at a time uses a file.
type Journal struct {
	dead   func(context.Context, DeadLetter) error
	sched  sched.Scheduler
	attend attendant
	ctx    context.Context
	end    context.CancelFunc
	open   sync.WaitGroup

	mu      sync.Mutex
	file    *os.File
	broken  error           // a line may be half written: nothing goes behind it
	pending map[string]bool // by event
}

// line is one line of the file: a write that was accepted, or one that ended.
type line struct {
	Accepted *Accepted `json:"accepted,omitempty"`
	Ended    string    `json:"ended,omitempty"` // event id
}

// OpenJournal opens or makes the file at path and goes on waiting for every
// write in it. dead is called with a write that failed for good; it must have
// kept it before it returns nil, and is called again later after an error. cfg
// gives the Logger and the Scheduler; the rest of it is not used.
func OpenJournal(client *memwrite.Client, path string, dead func(context.Context, DeadLetter) error, cfg Config) (*Journal, error) {
	if client == nil || dead == nil {
		return nil, errors.New("worker: a journal needs a client and a function for dead letters")
	}
	w, err := New(client, cfg) // for the defaults
	if err != nil {
		return nil, err
	}
	old, err := readJournal(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dead: dead, sched: w.sched, pending: map[string]bool{},
		attend: attendant{client: client, log: w.cfg.Logger, redrives: map[string]int{}},
	}
	j.ctx, j.end = context.WithCancel(context.Background())
	if j.file, err = rewrite(path, old); err != nil {
		return nil, err
	}
	j.mu.Lock() // the first may have ended before the last is begun
	defer j.mu.Unlock()
	for _, a := range old {
		j.pending[a.Receipt.EventID] = true
		j.wait(a)
	}
	return j, nil
}

// Watch keeps a write and waits for it in the background. A second call for the
// same event changes nothing.
func (j *Journal) Watch(_ context.Context, a Accepted) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.ctx.Err() != nil:
		return errors.New("worker: the journal is closed")
	case j.pending[a.Receipt.EventID]:
		return nil
	}
	if err := j.append(line{Accepted: &a}); err != nil {
		return err
	}
	j.pending[a.Receipt.EventID] = true
	j.wait(a)
	return nil
}

// Pending is how many writes have not ended.
func (j *Journal) Pending() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pending)
}

// Close stops waiting. What has not ended stays in the file.
func (j *Journal) Close() error {
	j.mu.Lock() // so that no Watch begins to wait afterwards
	j.end()
	j.mu.Unlock()
	j.open.Wait()
	return j.file.Close()
}

// pause is the wait after an end that is none: a key that was revoked, a dead
// letter that could not be kept.
const pause = time.Minute

func (j *Journal) wait(a Accepted) {
	j.open.Add(1)
	j.sched.Go(func() {
		defer j.open.Done()
		for j.ctx.Err() == nil {
			if j.finish(a) == nil {
				return
			}
			_ = sched.Sleep(j.ctx, j.sched, pause/2+sched.Jitter(j.sched, pause))
		}
	})
}

func (j *Journal) finish(a Accepted) error {
	_, err := j.attend.end(j.ctx, a.Receipt)
	if err != nil {
		if !errors.Is(err, memwrite.ErrEventFailed) {
			return err
		}
		d := Delivery{Data: a.Data, Source: a.Source}
		letter := deadLetter(d, a.Receipt.Key, j.sched.Now(), "the event failed and no redrive helps", err)
		letter.EventID, letter.Redrives = a.Receipt.EventID, j.attend.forget(a.Receipt.EventID)
		if err := j.dead(j.ctx, *letter); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.append(line{Ended: a.Receipt.EventID}); err != nil {
		return err
	}
	delete(j.pending, a.Receipt.EventID)
	return nil
}

func (j *Journal) append(l line) error {
	out, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if j.broken != nil {
		return j.broken
	}
	if _, err = j.file.Write(append(out, '\n')); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("worker: the journal cannot be written: %w", err)
	}
	return j.broken
}

// readJournal gives the writes of a file that have not ended. The last line
// may be half written: nobody was told that it is kept.
func readJournal(path string) ([]Accepted, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Accepted
	ended := map[string]bool{}
	in := bufio.NewReader(bytes.NewReader(data))
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var l line
		if json.Unmarshal(text, &l) != nil || l.Accepted == nil && l.Ended == "" {
			return nil, fmt.Errorf("worker: %s: line %d is not a journal's", filepath.Base(path), n)
		}
		if l.Ended != "" {
			ended[l.Ended] = true
			continue
		}
		all = append(all, *l.Accepted)
		delete(ended, l.Accepted.Receipt.EventID) // accepted again after it had ended
	}
	var left []Accepted
	seen := map[string]bool{}
	for _, a := range all {
		if id := a.Receipt.EventID; !ended[id] && !seen[id] {
			seen[id] = true
			left = append(left, a)
		}
	}
	return left, nil
}

// rewrite puts a file with nothing but the open writes in the old one's place,
// and opens it for more.
func rewrite(path string, left []Accepted) (*os.File, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	for i := range left {
		if err := enc.Encode(line{Accepted: &left[i]}); err != nil {
			return nil, err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(buf.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
