package postgres

import (
	"context"
	"encoding/binary"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// send does write as a transaction of its own. pgx would put the parameters
// together in a buffer before it copies them into the message; they are too long
// for that. The server knows their types by the function.
func (s *Store) send(ctx context.Context, conn *pgx.Conn, args []any) error {
	types := *s.types.Load()
	values, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, arg := range args {
		formats[i] = pgtype.BinaryFormatCode
		var oid uint32
		switch arg := arg.(type) {
		case []byte: // rows
			if arg != nil {
				binary.BigEndian.PutUint32(arg[8:], types[i-(len(args)-len(types))].element)
			}
			values[i] = arg
			continue
		case [][]byte:
			oid = pgtype.ByteaArrayOID
		case []string:
			oid = pgtype.TextArrayOID
		case []int64:
			oid = pgtype.Int8ArrayOID
		}
		var err error
		if values[i], err = conn.TypeMap().Encode(oid, pgtype.BinaryFormatCode, arg, nil); err != nil {
			return err
		}
	}
	return conn.PgConn().ExecParams(ctx, write, values, nil, formats, nil).Read().Err
}
