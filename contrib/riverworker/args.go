package riverworker

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/worker"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Args is one record as a job. Make it with [NewArgs].
type Args struct {
	// Record is the record's JSON as a string: PostgreSQL's jsonb would write
	// numbers and fields its own way, and with them the command that an
	// Idempotency-Key stands for.
	Record string `json:"record,omitempty"`
	// Raw is a record that is no text PostgreSQL can store.
	Raw []byte `json:"raw,omitempty"`
}

// NewArgs takes a record in the form that [worker.Decode] reads. Insert it with
// InsertTx of your River client, in the transaction of your own row: then the
// write is kept if and only if the row is.
func NewArgs(record []byte) Args {
	if !utf8.Valid(record) || bytes.IndexByte(record, 0) >= 0 {
		return Args{Raw: record}
	}
	return Args{Record: string(record)}
}

// Kind is the job's name in River's tables.
func (Args) Kind() string { return "memwrite_record" }

// InsertOpts allows so many attempts that only the worker gives a record up. A
// snooze is no attempt; a process that is killed in the middle of one is.
func (Args) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: 10_000} }

func (a Args) data() []byte {
	if a.Raw != nil {
		return a.Raw
	}
	return []byte(a.Record)
}

// DeadLetterOf reads the dead letter that a cancelled job carries.
func DeadLetterOf(job *rivertype.JobRow) (worker.DeadLetter, bool) {
	var letter worker.DeadLetter
	var args Args
	if job.State != rivertype.JobStateCancelled || job.Kind != args.Kind() || json.Unmarshal(job.EncodedArgs, &args) != nil {
		return letter, false
	}
	var meta struct {
		Output json.RawMessage `json:"output"`
	}
	if json.Unmarshal(job.Metadata, &meta) != nil || json.Unmarshal(meta.Output, &letter) != nil {
		return letter, false // cancelled by hand
	}
	letter.Record, letter.Raw = nil, nil
	if data := args.data(); json.Valid(data) && utf8.Valid(data) {
		letter.Record = data
	} else {
		letter.Raw = data
	}
	return letter, true
}
