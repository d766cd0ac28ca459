package ingest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
)

// Line is one line of the report: what became of one record of the file.
type Line struct {
	Line     int    `json:"line"`
	Identity string `json:"identity,omitempty"`
	Outcome  string `json:"outcome"` // see the Outcome constants
	Reason   string `json:"reason,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Code     string `json:"code,omitempty"`
	EventID  string `json:"event_id,omitempty"`
}

// Outcomes of a record, beside a worker's endings: stored, already, skipped and
// no_memory.
const (
	Duplicate  = "duplicate"  // the same record stands further up in the file
	Rejected   = "rejected"   // it can never pass; mend it
	Held       = "held"       // somebody must act first: a quota, a key
	Unfinished = "unfinished" // the service did not take it now; run again
	Valid      = "valid"      // of a dry run
	Note       = "note"       // something harmless that was mended
)

// report writes lines as JSON, one each. nil writes nothing.
type report struct {
	file *os.File // nil when it is written elsewhere
	out  *bufio.Writer
	size int64
}

// openReport opens a report and goes on at size, where the state knows of it: a
// run that was killed may have written more.
func openReport(path string, size int64) (*report, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		size = min(size, info.Size())
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &report{file: f, out: bufio.NewWriter(f), size: size}, nil
}

func (r *report) write(l Line) error {
	if r == nil {
		return nil
	}
	out, err := json.Marshal(l)
	if err != nil {
		return err
	}
	n, err := r.out.Write(append(out, '\n'))
	r.size += int64(n)
	return err
}

func (r *report) flush() error {
	if r == nil {
		return nil
	}
	return r.out.Flush()
}

func (r *report) close() error {
	if r == nil {
		return nil
	}
	err := r.out.Flush()
	if r.file == nil {
		return err
	}
	if e := r.file.Close(); err == nil {
		err = e
	}
	return err
}
