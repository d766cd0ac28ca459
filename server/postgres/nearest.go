package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/memwrite/memwrite-go/internal/extract"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// slack is more than the extension's sums in single precision are off.
const slack = 1e-4

// Nearest is protocol.Searcher: every vector of the scope is compared, in the
// database. An index that finds most of the nearest would be faster and leave
// some out.
func (v *Vectors) Nearest(ctx context.Context, rq protocol.RecordQuery, text string, n int) (near []protocol.Near, rest float64, err error) {
	e := extract.Embed(text)
	q := scoped(rq)
	if q == nil || extract.Score(e, e) == 0 {
		return nil, 0, nil
	}
	q.args = append(q.args, literal(e))
	distance := fmt.Sprintf("(v.embedding operator(%s.<=>) $%d::text::%s)", v.schema, len(q.args), v.typ())
	q.and("(v.id is null or "+distance+" < %s)", 1+slack)
	sql := q.sql(`select r.id, `+distance+`, case when v.id is null then r.doc end from records r left join `+vectorTable+` v on v.id = r.id`,
		"(v.id is not null), "+distance, n+1)
	found, err := list(ctx, v.s, scanNear, sql, q.args...)
	if err != nil {
		return nil, 0, err
	}
	more := len(found) > n
	for _, f := range found[:min(n, len(found))] {
		rest = 1
		if f.doc == nil {
			f.Score = min(max(1-f.distance, 0), 1)
			rest = f.Score + slack
		} else if r, err := recordOf(f.ID, true, f.doc); err != nil {
			return nil, 0, err
		} else {
			f.Score = extract.Score(e, extract.Embed(r.Text))
		}
		if f.doc == nil || f.Score > 0 { // at 0 the extension's sum may be off
			near = append(near, f.Near)
		}
	}
	if !more {
		rest = 0
	}
	return near, rest, nil
}

// neighbour is a record of a scope: with its distance from the query, or with
// its document where it has no vector.
type neighbour struct {
	protocol.Near
	distance float64
	doc      []byte
}

func scanNear(row pgx.CollectableRow) (n neighbour, err error) {
	var distance *float64
	if err := row.Scan(&n.ID, &distance, &n.doc); err != nil {
		return n, err
	}
	if distance != nil {
		n.distance = *distance
	}
	return n, nil
}
