package memory

import (
	"context"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// group is what the tasks of one list have in common. A query of the rarest of
// them costs no more than what it finds.
type group struct {
	kind  protocol.Kind
	state protocol.State
}

// file puts a row into the list of its group, and takes it out of the one it
// was in.
func (sp *space) file(r *row) {
	now := group{r.task.Kind, r.task.State}
	if r.filed == now {
		return
	}
	if r.list != nil {
		r.list.remove(r)
	}
	l := sp.tasks[now]
	if l == nil {
		l = newList[*row]()
		sp.tasks[now] = l
	}
	l.insert(r)
	r.filed, r.list = now, l
}

func (s *Store) Tasks(_ context.Context, q protocol.TaskQuery) ([]protocol.Task, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sp := s.spaces[q.Workspace]
	if sp == nil {
		return nil, nil
	}
	var from []cursor[*row]
	for g, l := range sp.tasks {
		if (len(q.Kinds) == 0 || slices.Contains(q.Kinds, g.kind)) && (q.State == "" || q.State == g.state) {
			from = append(from, l.newest(q.After))
		}
	}
	var out []protocol.Task
	for q.Limit == 0 || len(out) < q.Limit {
		var next *cursor[*row]
		var newest *row
		for i := range from {
			if r, ok := from[i].peek(); ok && (newest == nil || placeOf(r).Before(placeOf(newest))) {
				next, newest = &from[i], r
			}
		}
		if next == nil {
			break
		}
		out = append(out, newest.task)
		next.skip()
	}
	return out, nil
}
