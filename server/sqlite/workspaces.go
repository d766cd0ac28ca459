package sqlite

import (
	"sync"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// workspaces remembers what was read of them: each write looks at its own, they
// hardly ever change, and nobody else writes the file.
type workspaces struct {
	mu    sync.Mutex
	epoch int64 // moves when one is changed
	known map[string]protocol.Workspace
}

// get also says in which epoch it was looked for.
func (ws *workspaces) get(id string) (protocol.Workspace, int64, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, ok := ws.known[id]
	return w, ws.epoch, ok
}

// put keeps what was read, unless one was changed since.
func (ws *workspaces) put(w protocol.Workspace, epoch int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if epoch != ws.epoch {
		return
	}
	if ws.known == nil || len(ws.known) >= maxRemembered {
		ws.known = map[string]protocol.Workspace{}
	}
	ws.known[w.ID] = w
}

// place says ErrNotFound of a workspace that is not there. One that is stays.
func (x *tx) place(workspace string) error {
	if x.places[workspace] {
		return nil
	}
	var one int64
	err := x.query(`SELECT 1 FROM workspace WHERE id = ?`, []any{workspace}, &one)
	if err == nil {
		x.places[workspace] = true
	}
	return err
}

func (ws *workspaces) forget() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.epoch++
	clear(ws.known)
}
