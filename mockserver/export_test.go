package mockserver

import (
	"net/http"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/store/memory"
)

// Watch starts the server anew on an empty store that wrap may look into.
func (s *Server) Watch(wrap func(protocol.Store) protocol.Store) error {
	return s.core.replace(wrap(memory.New(firstNumber)))
}

// Stored is everything that is stored, as the protocol sees it.
func (s *Server) Stored() protocol.Snapshot { return s.snapshot() }

// Serve answers one request as if it came from wherever it says.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }
