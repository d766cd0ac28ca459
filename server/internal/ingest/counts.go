package ingest

import (
	"fmt"
	"time"

	"github.com/memwrite/memwrite-go/worker"
)

// Counts is what became of the records so far.
type Counts struct {
	Lines      int   `json:"lines"` // where reading is
	Bytes      int64 `json:"bytes"`
	Records    int   `json:"records"`
	Before     int   `json:"before"` // done by an earlier run
	Stored     int   `json:"stored"`
	Already    int   `json:"already"`
	Skipped    int   `json:"skipped"` // no_memory included
	Duplicate  int   `json:"duplicate"`
	Rejected   int   `json:"rejected"`
	Held       int   `json:"held"`
	Unfinished int   `json:"unfinished"`
	Valid      int   `json:"valid,omitzero"`
	Holding    bool  `json:"holding,omitzero"`
	// Incomplete says that the file was not read to its end.
	Incomplete bool   `json:"incomplete,omitzero"`
	HeldFor    string `json:"held_for,omitempty"`
	Why        string `json:"why,omitempty"` // a reason of Unfinished
}

func (in *ingest) say(l Line) error {
	c := &in.counts
	switch l.Outcome {
	case string(worker.Stored):
		c.Stored++
	case string(worker.Already):
		c.Already++
	case string(worker.Skipped), string(worker.NoMemory):
		c.Skipped++
	case Duplicate:
		c.Duplicate++
	case Rejected:
		c.Rejected++
	case Held:
		c.Held++
	case Unfinished:
		c.Unfinished++
	case Valid:
		c.Valid++
	}
	if in.cfg.Said != nil {
		in.cfg.Said(l)
	}
	if err := in.report.write(l); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	return nil
}

func (in *ingest) progress(end bool) {
	now := in.sched.Now()
	if in.cfg.Progress == nil || !end && now.Sub(in.said) < 200*time.Millisecond {
		return
	}
	in.said = now
	in.cfg.Progress(in.counts)
}
