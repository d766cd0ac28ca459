package memory

import (
	"hash/maphash"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// seed is of the hashes that records are listed under. Two names of one hash
// share a list, so that whoever reads one looks at the record as well.
var seed = maphash.MakeSeed()

// owner is one of the names a record is listed under, hashed.
type owner uint64

// owners are the names in a scope: the end user of MemorySync, and user, agent
// and run of FishMem.
func owners(w protocol.Wire, s protocol.Scope) (out [3]owner, n int) {
	fields := [...]string{s.EndUser, "", ""}
	if w != protocol.MemorySync {
		fields = [...]string{s.UserID, s.AgentID, s.RunID}
	}
	for i, id := range fields {
		if id != "" {
			out[n] = owner(mix(hash(string(w)), uint64(i), hash(id)))
			n++
		}
	}
	return out, n
}

func hash(s string) uint64 {
	if s == "" { // as most names in a scope are
		return 0
	}
	return maphash.String(seed, s)
}

// mix folds numbers into one, in their order.
func mix(ns ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, n := range ns {
		h = (h ^ n) * 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	return h
}

// matches says that a record's scope has what a query's names.
func matches(have, want protocol.Scope) bool {
	ok := func(h, w string) bool { return w == "" || h == w }
	return ok(have.Tenant, want.Tenant) && ok(have.Project, want.Project) && ok(have.EndUser, want.EndUser) &&
		ok(have.UserID, want.UserID) && ok(have.AgentID, want.AgentID) && ok(have.RunID, want.RunID)
}

// topic is what facts that are compared have in common, hashed.
type topic uint64

func topicOf(r *protocol.Record) topic { return topicIn(r.Wire, r.Scope, r.Type, r.Key) }

func topicIn(w protocol.Wire, s protocol.Scope, typ, key string) topic {
	return topic(mix(hash(string(w)), hash(s.Tenant), hash(s.Project), hash(s.EndUser), hash(s.UserID), hash(s.AgentID), hash(s.RunID), hash(typ), hash(key)))
}

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

// add keeps new records where they lie: they are the store's from now on.
func (sp *space) add(rs []protocol.Record) {
	for i := range rs {
		r := &rs[i]
		sp.records[r.ID] = r
		if r.Number != 0 {
			sp.byNumber[r.Number] = r
		}
		os, n := owners(r.Wire, r.Scope)
		for _, o := range os[:n] {
			l := sp.byOwner[o]
			if l == nil {
				l = newList[*protocol.Record]()
				sp.byOwner[o] = l
			}
			l.insert(r)
		}
		if r.Wire == protocol.MemorySync {
			about := topicOf(r)
			sp.byTopic[about] = append(sp.byTopic[about], r)
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
		os, n := owners(r.Wire, r.Scope)
		for _, o := range os[:n] {
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
