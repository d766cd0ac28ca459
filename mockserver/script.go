package mockserver

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
)

// Fact is one thing an extractor found in a text.
type Fact struct {
	Text string // in the extractor's words
	Type string // fact, preference, ...; "" is fact
	Key  string // what it is about: facts of one type and key are compared
	// Replaces: an end user has one fact of this type and key, so that this one
	// takes the place of an older one that says something else, whose text is
	// gone then. Facts of FishMem's wire stand beside each other all the same.
	Replaces bool
}

// Script is an extractor of your own. It gets the text of an add or a turn, or
// one message of a conversation, and gives what is worth keeping. With ok false
// the server's own rules read the text. It may be called from many goroutines,
// and again for a task whose runner died.
type Script func(text string) (facts []Fact, ok bool)

// SetScript replaces the extractor; nil puts the server's own rules back.
func (s *Server) SetScript(script Script) {
	if script == nil {
		s.core.script.Store(nil)
		return
	}
	s.core.script.Store(&script)
}

// Extract reads what the end user said: the text, or the user's messages. What
// an assistant said is context and no evidence about the user.
func (c *core) Extract(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
	script := c.script.Load()
	out := []protocol.Fact{}
	for _, text := range extract.Texts(in, service.PlainTurn) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if script != nil {
			if facts, ok := (*script)(text); ok {
				for _, f := range facts {
					if f.Type == "" {
						f.Type = "fact"
					}
					out = append(out, protocol.Fact(f))
				}
				continue
			}
		}
		out = append(out, extract.Facts(text)...)
	}
	return out, nil
}

// Prompt says that there is no script, which may wait for the test.
func (c *core) Prompt() bool { return c.script.Load() == nil }

// Same says that two facts of one type and key of one end user are one, so that
// the second is not stored. It may be called from many goroutines.
type Same func(a, b string) bool

// SetSame replaces the comparison of the near-duplicate filter; nil puts the
// server's own back, which compares the words that carry meaning.
func (s *Server) SetSame(same Same) {
	if same == nil {
		s.core.same.Store(nil)
		return
	}
	s.core.same.Store(&same)
}

// Same is asked by the near-duplicate filter.
func (c *core) Same(a, b string) bool {
	if same := c.same.Load(); same != nil {
		return (*same)(a, b)
	}
	return extract.Same(a, b)
}

// Score is asked by search.
func (c *core) Score(query, text string) float64 { return extract.Comparer{}.Score(query, text) }
