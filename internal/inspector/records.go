package inspector

import (
	"errors"
	"net/http"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// source is a record with the write it came from.
type source struct {
	Record protocol.Record
	Task   protocol.Task
	// Live: a reader of the wire sees it. The text of another is not shown.
	Live bool
}

type recordList struct {
	Records []source
	Older   string
}

// records lists what the newest writes stored, newest first.
func (i *Inspector) records(w http.ResponseWriter, r *http.Request) {
	after, ok := placeOf(r.URL.Query().Get("after"))
	if !ok {
		http.Error(w, "after is no place in the list", http.StatusBadRequest)
		return
	}
	workspace, store := i.workspace(r), i.Store()
	ts, err := store.Tasks(r.Context(), protocol.TaskQuery{Workspace: workspace, State: protocol.Succeeded, After: after, Limit: pageSize + 1})
	if err != nil {
		i.broken(w)
		return
	}
	var l recordList
	if len(ts) > pageSize {
		ts = ts[:pageSize]
		l.Older = cursor(ts[pageSize-1])
	}
	for _, t := range ts {
		if t.Result == nil {
			continue
		}
		for _, e := range t.Result.Records {
			if e.Existing {
				continue // it is listed with the write that made it
			}
			rec, err := store.Record(r.Context(), workspace, e.ID)
			if errors.Is(err, protocol.ErrNotFound) {
				continue
			}
			if err != nil {
				i.broken(w)
				return
			}
			l.Records = append(l.Records, source{Record: rec, Task: t, Live: rec.Live(i.Now())})
		}
	}
	i.show(w, r, "records", "Records", l)
}
