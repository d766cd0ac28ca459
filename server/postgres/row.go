package postgres

import (
	"crypto/sha256"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// nanos is a time as SQL compares it. One beyond what 64 bits hold is the
// nearest that they do: only a record's end can be, and its document has it
// exactly.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Year() < 1678:
		return math.MinInt64
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// digest is what a caller's string is looked up by: of one length, whatever it
// holds. A half of a SHA-256 is enough not to meet another's.
func digest(s string) []byte {
	if s == "" {
		return []byte{}
	}
	h := sha256.Sum256([]byte(s))
	return h[:16]
}

const taskColumns = `t.id, t.version, t.doc, t.standing`

// scanTask reads columns of before and then taskColumns.
func scanTask(row pgx.CollectableRow, before ...any) (protocol.Task, error) {
	var id string
	var version int64
	var body, standing pgtype.DriverBytes // of the connection: what is read of them is copied
	if err := row.Scan(append(before, &id, &version, &body, &standing)...); err != nil {
		return protocol.Task{}, err
	}
	t, err := doc.Task(body, version)
	if err == nil && standing != nil {
		err = doc.Stand(&t, standing)
	}
	if err != nil {
		return protocol.Task{ID: id}, unreadable("task", id)
	}
	return t, nil
}

func oneTask(row pgx.CollectableRow) (protocol.Task, error) { return scanTask(row) }

const recordColumns = `r.id, r.projected, r.doc`

func scanRecord(row pgx.CollectableRow) (protocol.Record, error) {
	var id string
	var projected bool
	var body []byte
	if err := row.Scan(&id, &projected, &body); err != nil {
		return protocol.Record{}, err
	}
	return recordOf(id, projected, body)
}

func recordOf(id string, projected bool, body []byte) (protocol.Record, error) {
	r, err := doc.Record(body, projected)
	if err != nil {
		return protocol.Record{ID: id}, unreadable("record", id)
	}
	return r, nil
}

func unreadable(what, id string) error {
	return fmt.Errorf("%w: the row of %s %s cannot be read", protocol.ErrInvariant, what, id)
}

// written is a document, or says that there can be none. What the encoder says
// may hold the input.
func written(body []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, broken("a row cannot be written down")
	}
	return body, nil
}
