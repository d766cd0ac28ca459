package postgres

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// The server's numbers of the types that rows are made of.
const (
	oidBoolean = pgtype.BoolOID
	oidBytea   = pgtype.ByteaOID
	oidBigint  = pgtype.Int8OID
	oidInteger = pgtype.Int4OID
	oidText    = pgtype.TextOID
)

// rows is an array of rows of a composite type in the server's binary form,
// which array_recv and record_recv read. It is put together here because a step
// of a task is some forty values: what pgx does for each by its type costs more
// than the rest of the step. An array of other rows than the type's is refused by
// the server.
type rows struct {
	b             []byte
	fields, count int
	open          int // where the length of the row that is written goes
}

// header is the array's own: dimensions, nulls, element type, length, first index.
const header = 20

// newRows makes room for n rows of so many fields, each of about size bytes.
func newRows(n, fields, size int) *rows {
	r := &rows{fields: fields}
	if n > 0 {
		r.b = room(header + n*size)[:header]
		clear(r.b)
	}
	return r
}

// spare are the arrays of batches before this one. They are most of what a batch
// would leave to be collected.
var spare sync.Pool

// least is the smallest that is kept: a connection may go on with one that is
// smaller.
const least = 4096

// room has no length and at least that capacity.
func room(size int) []byte {
	if size >= least {
		if b, _ := spare.Get().(*[]byte); b != nil && cap(*b) >= size {
			return (*b)[:0]
		}
	}
	return make([]byte, 0, size)
}

func giveBack(b []byte) {
	if cap(b) >= least {
		spare.Put(&b)
	}
}

// begin begins a row; its fields follow in the order of the type.
func (r *rows) begin() {
	r.close()
	r.count++
	r.open = len(r.b)
	r.b = binary.BigEndian.AppendUint32(r.b, 0)
	r.b = binary.BigEndian.AppendUint32(r.b, uint32(r.fields))
}

func (r *rows) close() {
	if r.count > 0 {
		binary.BigEndian.PutUint32(r.b[r.open:], uint32(len(r.b)-r.open-4))
	}
}

func (r *rows) field(oid uint32, size int) {
	r.b = binary.BigEndian.AppendUint32(r.b, oid)
	r.b = binary.BigEndian.AppendUint32(r.b, uint32(size))
}

func (r *rows) null(oid uint32) { r.field(oid, -1) }

func (r *rows) text(s string) {
	r.field(oidText, len(s))
	r.b = append(r.b, s...)
}

// bytea is null for nil.
func (r *rows) bytea(b []byte) {
	if b == nil {
		r.null(oidBytea)
		return
	}
	r.field(oidBytea, len(b))
	r.b = append(r.b, b...)
}

// document is a bytea that is written where it goes.
func (r *rows) document(write func([]byte) ([]byte, error)) error {
	r.field(oidBytea, 0)
	from := len(r.b)
	b, err := written(write(r.b))
	if err != nil {
		return err
	}
	r.b = b
	binary.BigEndian.PutUint32(r.b[from-4:], uint32(len(r.b)-from))
	return nil
}

func (r *rows) bigint(n int64) {
	r.field(oidBigint, 8)
	r.b = binary.BigEndian.AppendUint64(r.b, uint64(n))
}

func (r *rows) integer(n int) {
	r.field(oidInteger, 4)
	r.b = binary.BigEndian.AppendUint32(r.b, uint32(n))
}

func (r *rows) place(at *pgtype.TID) {
	if at == nil {
		r.null(pgtype.TIDOID)
		return
	}
	r.field(pgtype.TIDOID, 6)
	r.b = binary.BigEndian.AppendUint32(r.b, at.BlockNumber)
	r.b = binary.BigEndian.AppendUint16(r.b, at.OffsetNumber)
}

func (r *rows) boolean(yes bool) {
	r.field(oidBoolean, 1)
	r.b = append(r.b, 0)
	if yes {
		r.b[len(r.b)-1] = 1
	}
}

// array is the parameter; nil, which is null, when there are no rows. The element
// type is put in when it is sent, for it is the database's: see rowTypes.
func (r *rows) array() []byte {
	if r.count == 0 {
		return nil
	}
	r.close()
	binary.BigEndian.PutUint32(r.b[0:], 1)
	binary.BigEndian.PutUint32(r.b[12:], uint32(r.count))
	binary.BigEndian.PutUint32(r.b[16:], 1)
	return r.b
}

// rowType is a composite type and the type of its arrays.
type rowType struct{ element, array uint32 }

// readRowTypes finds the types of write's last parameters in this database.
func readRowTypes(ctx context.Context, db interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}) ([]rowType, error) {
	found, err := db.Query(ctx, `select p.oid, p.typarray from unnest(array['memwrite_move', 'memwrite_transition', 'memwrite_entry',
		'memwrite_step', 'memwrite_task']::regtype[]) with ordinality as u(type, n) join pg_type p on p.oid = u.type order by u.n`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(r pgx.CollectableRow) (t rowType, err error) { err = r.Scan(&t.element, &t.array); return t, err })
}

// register lets a connection send rows as they are put together.
func (t rowType) register(conn *pgx.Conn) {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "memwrite rows", OID: t.array, Codec: rowCodec{element: t.element}})
}

// rowCodec sends the bytes of rows with the number of their type.
type rowCodec struct {
	pgtype.ByteaCodec
	element uint32
}

func (c rowCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]byte); !ok {
		return nil
	}
	return c
}

// Encode is of pgtype.EncodePlan.
func (c rowCodec) Encode(value any, buf []byte) ([]byte, error) {
	b := value.([]byte)
	if b == nil {
		return nil, nil
	}
	if len(buf) == 0 { // then they need no copy, and they are most of what is sent
		binary.BigEndian.PutUint32(b[8:], c.element)
		return b, nil
	}
	start := len(buf)
	buf = append(buf, b...)
	binary.BigEndian.PutUint32(buf[start+8:], c.element)
	return buf, nil
}
