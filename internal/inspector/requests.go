package inspector

import (
	"net/http"
	"slices"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// requestsShown bounds the requests of a page, the newest of them.
const requestsShown = 300

// marked is a request with what it was beside the others.
type marked struct {
	Request
	Mark string // duplicate, conflict, near miss or ""
	Of   int    // the request it is compared with
}

func (i *Inspector) requests(w http.ResponseWriter, r *http.Request) {
	all := mark(i.Requests())
	total := len(all)
	slices.Reverse(all)
	if len(all) > requestsShown {
		all = all[:requestsShown]
	}
	i.show(w, r, "requests", "Requests", struct {
		Requests []marked
		Total    int
	}{all, total})
}

// mark tells a repeat (the same identity and body) from a conflict (the same
// identity, another body) and from a near miss: the same body under another
// identity, which is how one fact lands twice.
func mark(rs []Request) []marked {
	type seen struct {
		seq  int
		body protocol.Hash
	}
	identities := map[string]seen{}
	bodies := map[string]seen{}
	out := make([]marked, 0, len(rs))
	for _, r := range rs {
		m := marked{Request: r}
		if r.Method == http.MethodPost && !r.Hash.IsZero() {
			id := r.Path + r.Hash.String()
			body := r.Path + r.Body.String()
			first, again := identities[id]
			twin, near := bodies[body]
			switch {
			case again && first.body == r.Body:
				m.Mark, m.Of = "duplicate", first.seq
			case again:
				m.Mark, m.Of = "conflict", first.seq
			case near && !r.Body.IsZero():
				m.Mark, m.Of = "near miss", twin.seq
			}
			if !again {
				identities[id] = seen{r.Seq, r.Body}
			}
			if !near {
				bodies[body] = seen{r.Seq, r.Body}
			}
		}
		out = append(out, m)
	}
	return out
}
