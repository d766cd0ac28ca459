package ingest

import (
	"io"

	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/worker"
)

// Config says what to read and how to write it. A zero number is its default.
type Config struct {
	In         io.Reader
	CSV        bool
	DeadLetter bool // lines are dead letters, whose records are written again
	Defaults   worker.Defaults
	Unordered  bool // records of one end user need not be written one after the other

	State  string // path; "" keeps none
	Report string // path; "" writes none
	// ReportTo takes the report in place of a file.
	ReportTo io.Writer
	// Said is called with each line of the report, also when none is written.
	Said   func(Line)
	DryRun bool // read and check everything, send nothing

	Concurrency int // 8
	Attempts    int // how often a record is sent whose service fails; 5
	WaitHold    bool
	Worker      worker.Config // its waits; the rest is set here

	// Progress is called now and then, and at the end.
	Progress  func(Counts)
	Scheduler sched.Scheduler
}
