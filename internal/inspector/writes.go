package inspector

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

const (
	pageSize = 100
	// searched bounds how many of the newest writes a search looks at.
	searched = 5000
)

// list is a page of writes.
type list struct {
	Tasks    []protocol.Task
	State    protocol.State
	States   []protocol.State
	Query    string
	Older    string // cursor of the next page, "" at the end
	Searched int    // how many were looked at, 0 without a search
	Running  int    // of those shown
}

var states = []protocol.State{protocol.Pending, protocol.Running, protocol.Retrying, protocol.Succeeded, protocol.Failed}

func (i *Inspector) writes(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	l := list{States: states, Query: strings.TrimSpace(q.Get("q")), State: stateOf(q.Get("state"))}
	after, ok := placeOf(q.Get("after"))
	if !ok {
		http.Error(w, "after is no place in the list", http.StatusBadRequest)
		return
	}
	query := protocol.TaskQuery{Workspace: i.workspace(r), State: l.State, After: after, Limit: pageSize + 1}
	var err error
	if l.Query != "" {
		err = i.search(r.Context(), &l, query)
	} else if l.Tasks, err = i.Store().Tasks(r.Context(), query); err == nil && len(l.Tasks) > pageSize {
		l.Tasks = l.Tasks[:pageSize]
		l.Older = cursor(l.Tasks[pageSize-1])
	}
	if err != nil {
		i.broken(w)
		return
	}
	for _, t := range l.Tasks {
		if t.State == protocol.Running {
			l.Running++
		}
	}
	i.show(w, r, "writes", "Writes", l)
}

func stateOf(s string) protocol.State {
	for _, known := range states {
		if s == string(known) {
			return known
		}
	}
	return ""
}

func cursor(t protocol.Task) string {
	return t.CreatedAt.UTC().Format(time.RFC3339Nano) + "," + t.ID
}

func placeOf(s string) (*protocol.Place, bool) {
	if s == "" {
		return nil, true
	}
	at, id, found := strings.Cut(s, ",")
	created, err := time.Parse(time.RFC3339Nano, at)
	if !found || err != nil {
		return nil, false
	}
	return &protocol.Place{Created: created, ID: id}, true
}

// search finds a write by its id, the id of its record, the key or reference
// it came under, or looks through the newest ones.
func (i *Inspector) search(ctx context.Context, l *list, q protocol.TaskQuery) error {
	store, exact := i.Store(), map[string]bool{}
	add := func(t protocol.Task, err error) error {
		if errors.Is(err, protocol.ErrNotFound) {
			return nil
		}
		if err == nil && t.Workspace == q.Workspace && !exact[t.ID] && (l.State == "" || t.State == l.State) {
			exact[t.ID] = true
			l.Tasks = append(l.Tasks, t)
		}
		return err
	}
	t, err := store.Task(ctx, l.Query)
	if err := add(t, err); err != nil {
		return err
	}
	t, err = store.TaskByIdentity(ctx, protocol.CommandKey(q.Workspace, l.Query))
	if err := add(t, err); err != nil {
		return err
	}
	rec, err := store.Record(ctx, q.Workspace, l.Query)
	if err == nil {
		t, err = store.Task(ctx, rec.TaskID)
		err = add(t, err)
	}
	if err != nil && !errors.Is(err, protocol.ErrNotFound) {
		return err
	}
	q.After = nil
	q.Limit = searched
	ts, err := store.Tasks(ctx, q)
	if err != nil {
		return err
	}
	l.Searched = len(ts)
	for _, t := range ts {
		if len(l.Tasks) >= pageSize {
			break
		}
		if !exact[t.ID] && matches(&t, q.Workspace, l.Query) {
			l.Tasks = append(l.Tasks, t)
		}
	}
	return nil
}

// matches looks at what the list shows, and at the reference of an add, which
// is kept as a hash alone.
func matches(t *protocol.Task, workspace, query string) bool {
	has := func(s string) bool { return s != "" && strings.Contains(strings.ToLower(s), strings.ToLower(query)) }
	switch {
	case has(t.ID), has(string(t.Kind)), has(who(t.Scope)), has(t.Lease.Owner):
		return true
	case t.Failure != nil && (has(string(t.Failure.Class)) || has(t.Failure.Code)):
		return true
	case t.Kind == protocol.MemorySyncAdd && !t.Identity.Hash.IsZero():
		return t.Identity.Hash == protocol.ClientRef(workspace, t.Scope.Tenant, t.Scope.Project, t.Scope.EndUser, query)
	}
	return false
}

// who is the person a memory is about, as the caller names them.
func who(s protocol.Scope) string {
	return cmp.Or(s.EndUser, s.UserID, s.AgentID, s.RunID)
}
