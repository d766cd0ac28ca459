package memory

import (
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// owner is one of the names a record is listed under.
type owner struct {
	wire  protocol.Wire
	field byte // 'e'nd user, 'u'ser, 'a'gent, 'r'un
	id    string
}

func owners(w protocol.Wire, s protocol.Scope) []owner {
	var out []owner
	add := func(f byte, id string) {
		if id != "" {
			out = append(out, owner{w, f, id})
		}
	}
	if w == protocol.MemorySync {
		add('e', s.EndUser)
		return out
	}
	add('u', s.UserID)
	add('a', s.AgentID)
	add('r', s.RunID)
	return out
}

// matches says that a record's scope has what a query's names.
func matches(have, want protocol.Scope) bool {
	ok := func(h, w string) bool { return w == "" || h == w }
	return ok(have.Tenant, want.Tenant) && ok(have.Project, want.Project) && ok(have.EndUser, want.EndUser) &&
		ok(have.UserID, want.UserID) && ok(have.AgentID, want.AgentID) && ok(have.RunID, want.RunID)
}

// topic is what equal facts have in common.
type topic struct {
	wire     protocol.Wire
	scope    protocol.Scope
	typ, key string
}

func topicOf(r *protocol.Record) topic { return topic{r.Wire, r.Scope, r.Type, r.Key} }

// admit says why new records must not be written.
func (sp *space) admit(rs []protocol.Record) error {
	for i := range rs {
		r := &rs[i]
		if sp.records[r.ID] != nil || (r.Number != 0 && sp.byNumber[r.Number] != nil) {
			return broken("record %s exists", r.ID)
		}
	}
	return nil
}

func (sp *space) add(rs []protocol.Record) {
	for i := range rs {
		r := rs[i]
		sp.records[r.ID] = &r
		if r.Number != 0 {
			sp.byNumber[r.Number] = &r
		}
		for _, o := range owners(r.Wire, r.Scope) {
			if sp.byOwner[o] == nil {
				sp.byOwner[o] = &list[*protocol.Record]{}
			}
			sp.byOwner[o].insert(&r)
		}
		if r.Wire == protocol.MemorySync {
			sp.byTopic[topicOf(&r)] = append(sp.byTopic[topicOf(&r)], &r)
		}
	}
}

func (sp *space) project(id string) {
	if r := sp.records[id]; r != nil && !r.Forgotten {
		r.Projected = true
	}
}

// buriable says why tombstones cannot all take the place of their records.
func (sp *space) buriable(rs []protocol.Record) error {
	seen := make(map[string]bool, len(rs))
	for i := range rs {
		now := &rs[i]
		r := sp.records[now.ID]
		if r == nil || r.Forgotten {
			return protocol.ErrStale
		}
		if seen[r.ID] || !now.Forgotten || !sameOwner(r, now) {
			return broken("record %s cannot be forgotten by this", r.ID)
		}
		seen[r.ID] = true
	}
	return nil
}

func sameOwner(r, now *protocol.Record) bool {
	return r.Number == now.Number && r.Wire == now.Wire && r.TaskID == now.TaskID && r.Scope == now.Scope && r.CreatedAt.Equal(now.CreatedAt)
}

// replace changes what a record says and keeps where it is listed; a forgotten
// one leaves the lists.
func (sp *space) replace(now protocol.Record) error {
	r := sp.records[now.ID]
	if r.Forgotten {
		return protocol.ErrNotFound
	}
	if !sameOwner(r, &now) {
		return broken("record %s changes whose it is", r.ID)
	}
	old := topicOf(r)
	same := func(x *protocol.Record) bool { return x == r }
	if now.Forgotten {
		for _, o := range owners(r.Wire, r.Scope) {
			sp.byOwner[o].remove(r)
		}
	}
	*r = now
	if r.Wire != protocol.MemorySync || (!r.Forgotten && topicOf(r) == old) {
		return nil
	}
	if sp.byTopic[old] = slices.DeleteFunc(sp.byTopic[old], same); len(sp.byTopic[old]) == 0 {
		delete(sp.byTopic, old)
	}
	if !r.Forgotten {
		sp.byTopic[topicOf(r)] = append(sp.byTopic[topicOf(r)], r)
	}
	return nil
}
