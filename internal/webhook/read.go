package webhook

import "github.com/memwrite/memwrite-go/internal/protocol"

// read takes what ended since the last look.
func (s *Sender) read() error {
	s.mu.Lock()
	workspaces := make([]string, 0, len(s.targets))
	for w := range s.targets {
		workspaces = append(workspaces, w)
	}
	s.mu.Unlock()
	for _, w := range workspaces {
		if err := s.readWorkspace(w); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sender) readWorkspace(w string) error {
	store := s.cfg.Store()
	s.mu.Lock()
	at, known := s.at[w]
	epoch := s.epoch
	s.mu.Unlock()
	if !known {
		var err error
		if at, err = s.begin(store, w); err != nil {
			return err
		}
	}
	for {
		s.mu.Lock()
		full := len(s.waiting) >= maxWaiting
		s.mu.Unlock()
		if full {
			return nil
		}
		page, err := store.Transitions(s.ctx, w, at, 200)
		if err != nil {
			return err
		}
		var found []*delivery
		for _, tr := range page {
			at = tr.Position
			if tr.To != protocol.Succeeded {
				continue
			}
			t, err := store.Task(s.ctx, tr.TaskID)
			if err != nil {
				return err
			}
			if t.Kind == protocol.Infer {
				found = append(found, newDelivery(t))
			}
		}
		s.mu.Lock()
		if s.epoch != epoch {
			s.mu.Unlock()
			return nil
		}
		s.at[w] = at
		s.waiting = append(s.waiting, found...)
		s.mu.Unlock()
		if len(page) < 200 {
			return nil
		}
	}
}

// begin finds the position before the first transition that is young enough to
// be told again, in a few reads of one row.
func (s *Sender) begin(store protocol.Store, w string) (int64, error) {
	since := s.cfg.Scheduler.Now().Add(-s.cfg.Again)
	old := func(after int64) (bool, error) {
		page, err := store.Transitions(s.ctx, w, after, 1)
		return err == nil && len(page) == 1 && page[0].At.Before(since), err
	}
	low, high := int64(-1), int64(1) // after low it is old, or low is -1; after high it is not
	for {
		is, err := old(high)
		if err != nil {
			return 0, err
		}
		if !is {
			break
		}
		low, high = high, high*2
	}
	for high-low > 1 {
		middle := low + (high-low)/2
		is, err := old(middle)
		if err != nil {
			return 0, err
		}
		if is {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}
