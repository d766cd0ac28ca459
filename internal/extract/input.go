package extract

import (
	"context"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Texts is what the end user said in an input: the text, or the user's
// messages. What an assistant said is context and no evidence about the user.
// plainTurn takes the role prefix off a turn's text.
func Texts(in protocol.Input, plainTurn func(string) string) []string {
	if len(in.Messages) > 0 {
		var out []string
		for _, m := range in.Messages {
			if m.Role == "user" {
				out = append(out, m.Content)
			}
		}
		return out
	}
	if in.Kind == protocol.Turn {
		return []string{plainTurn(in.Text)}
	}
	return []string{in.Text}
}

// Rules is the extractor without a model: the rules of Facts, offline and the
// same at every call.
type Rules struct {
	PlainTurn func(string) string // see Texts
}

// Prompt says that there is nothing to wait for.
func (Rules) Prompt() bool { return true }

// Extract gives the facts of everything the end user said.
func (r Rules) Extract(ctx context.Context, in protocol.Input) ([]protocol.Fact, error) {
	out := []protocol.Fact{}
	for _, text := range Texts(in, r.PlainTurn) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, Facts(text)...)
	}
	return out, nil
}

// Comparer compares by the words that carry meaning.
type Comparer struct{}

// Same is the function Same.
func (Comparer) Same(a, b string) bool { return Same(a, b) }

// Score is the nearness of the embeddings.
func (Comparer) Score(query, text string) float64 { return Score(Embed(query), Embed(text)) }
