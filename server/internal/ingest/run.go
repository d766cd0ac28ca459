package ingest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/transport"
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

// ingest is one run.
type ingest struct {
	cfg    Config
	sched  sched.Scheduler
	worker *worker.Worker
	src    source
	state  *state
	report *report
	counts Counts

	open      int
	finished  chan done
	committed time.Time
	said      time.Time
	stop      bool            // nothing more is begun
	waits     context.Context // ends with ctx, and with a hold
	endWaits  context.CancelFunc
	writes    context.Context // does not end: Close ends what is on its way
	scratch   string          // the state of a dry run
}

// Grace is how long writes on their way may take when a run is interrupted.
const Grace = 5 * time.Second

type done struct {
	it       item
	identity []byte
	out      worker.Outcome
}

// Run reads the file to its end, or until ctx ends or a hold begins, and says
// what became of its records. Its error is one of reading or of the state: with
// one, too, running it again goes on.
func Run(ctx context.Context, client *memwrite.Client, cfg Config) (Counts, error) {
	if cfg.Scheduler == nil {
		cfg.Scheduler = sched.Real()
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = 8
	}
	if cfg.Attempts <= 0 {
		cfg.Attempts = 5
	}
	in := &ingest{cfg: cfg, sched: cfg.Scheduler, finished: make(chan done, 2*cfg.Concurrency)}
	in.src = &jsonl{newLines(cfg.In)}
	if cfg.CSV {
		in.src = &csvFile{lines: newLines(cfg.In)}
	}
	if err := in.prepare(ctx, client); err != nil {
		return in.counts, errors.Join(err, in.close())
	}
	err := in.read(ctx)
	for in.open > 0 {
		err = errors.Join(err, in.take())
	}
	in.counts.Incomplete = in.counts.Incomplete || err != nil
	err = errors.Join(err, in.close())
	in.progress(true)
	return in.counts, err
}

func (in *ingest) prepare(ctx context.Context, client *memwrite.Client) (err error) {
	cfg := in.cfg
	in.committed, in.said = in.sched.Now(), in.sched.Now()
	in.waits, in.endWaits = context.WithCancel(ctx)
	in.writes = context.WithoutCancel(ctx)
	if cfg.DryRun {
		if in.scratch, err = os.MkdirTemp("", "memwrite-ingest-"); err != nil {
			return err
		}
		cfg.State = filepath.Join(in.scratch, "state")
	}
	var size int64
	if cfg.State != "" {
		if in.state, err = openState(in.writes, cfg.State); err != nil {
			return err
		}
		if size, err = in.state.reportSize(in.writes); err != nil {
			return err
		}
	}
	if cfg.ReportTo != nil {
		in.report = &report{out: bufio.NewWriter(cfg.ReportTo)}
	} else if cfg.Report != "" {
		if in.report, err = openReport(cfg.Report, size); err != nil {
			return fmt.Errorf("the report: %w", err)
		}
	}
	if cfg.DryRun {
		return nil
	}
	set := cfg.Worker
	set.Concurrency, set.InHand, set.Scheduler = cfg.Concurrency, 2*cfg.Concurrency, cfg.Scheduler
	set.Decode = in.decode
	if in.worker, err = worker.New(client, set); err != nil {
		return err
	}
	context.AfterFunc(ctx, in.interrupt)
	return nil
}

// interrupt gives back what waits, and lets what is being written end soon.
func (in *ingest) interrupt() {
	in.endWaits()
	ctx, cancel := in.sched.WithTimeout(in.writes, Grace, context.DeadlineExceeded)
	defer cancel()
	_ = in.worker.Close(ctx)
}

// decode reads a record, which may be inside a dead letter.
func (in *ingest) decode(data []byte) (worker.Record, error) {
	if in.cfg.DeadLetter {
		var letter worker.DeadLetter
		if err := json.Unmarshal(data, &letter); err != nil || len(letter.Data()) == 0 {
			return worker.Record{}, errors.New("the line is not a dead letter")
		}
		data = letter.Data()
	}
	r, err := in.cfg.Defaults.Decode(bytes.TrimSpace(data))
	if err == nil && in.cfg.Unordered {
		r.Order = string(digest([]string{r.EndUser(), r.Identity()}))
	}
	return r, err
}

func (in *ingest) read(ctx context.Context) error {
	for {
		for in.open >= 2*in.cfg.Concurrency || len(in.finished) > 0 {
			if err := in.take(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			in.stop = true
		}
		if in.stop {
			in.counts.Incomplete = true
			return nil
		}
		it, err := in.src.next()
		in.counts.Bytes = in.src.offset()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the file: %w", err)
		}
		in.counts.Lines = max(in.counts.Lines, it.line)
		if it.note != "" {
			if err := in.report.write(Line{Line: it.line, Outcome: Note, Reason: it.note}); err != nil {
				return err
			}
		}
		if it.data == nil && it.err == nil {
			continue
		}
		in.counts.Records++
		if err := in.meet(it); err != nil {
			return err
		}
		if err := in.tick(); err != nil {
			return err
		}
	}
}

// meet decides about one record: sent now, done before, or refused.
func (in *ingest) meet(it item) error {
	var rec worker.Record
	if it.err == nil {
		rec, it.err = in.decode(it.data)
	}
	if it.err != nil {
		return in.say(Line{Line: it.line, Outcome: Rejected, Reason: it.err.Error()})
	}
	if in.state == nil {
		in.start(it, nil)
		return nil
	}
	ctx := in.writes // what was read is kept, also when ctx ends here
	identity, text := fingerprint(rec)
	k, found, err := in.state.find(ctx, identity)
	switch {
	case err != nil:
		return fmt.Errorf("the state: %w", err)
	case found && !bytes.Equal(k.text, text) && (k.run == in.state.run || k.ended != ""):
		where := fmt.Sprintf("line %d has", k.line)
		if k.run != in.state.run {
			where = "an earlier run wrote"
		}
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Rejected,
			Reason: where + " this id with another text; an edit needs a version of its own"})
	case found && k.run == in.state.run:
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Duplicate, Reason: fmt.Sprintf("of line %d", k.line)})
	case found && k.ended != "":
		in.counts.Before++
		if err := in.state.again(ctx, identity, it.line); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
		return nil
	}
	if err := in.state.meet(ctx, identity, text, it.line); err != nil {
		return fmt.Errorf("the state: %w", err)
	}
	if in.cfg.DryRun {
		return in.say(Line{Line: it.line, Identity: rec.Identity(), Outcome: Valid})
	}
	in.start(it, identity)
	return nil
}

func (in *ingest) start(it item, identity []byte) {
	in.open++
	in.sched.Go(func() { in.finished <- done{it, identity, in.deliver(it)} })
}

// deliver sends one record until it has an end, or is not worth more now.
func (in *ingest) deliver(it item) worker.Outcome {
	for attempt := 1; ; attempt++ {
		out := in.worker.Handle(in.writes, worker.Delivery{Data: it.data, Attempt: attempt})
		switch out.Action {
		case memwrite.RetryAfter:
			if attempt >= in.cfg.Attempts {
				return out
			}
		case memwrite.Hold:
			if !in.outlasts(out) {
				return out
			}
			attempt--
		default:
			return out
		}
		if sched.Sleep(in.waits, in.sched, out.After) != nil {
			return out
		}
	}
}

// take waits for the next record to end, and keeps what became of it.
func (in *ingest) take() error {
	d := <-in.finished
	in.open--
	line := Line{Line: d.it.line, Identity: d.out.Identity, Reason: reasonOf(d.out.Reason, d.out.Err)}
	var e *memwrite.Error
	if errors.As(d.out.Err, &e) {
		line.Kind, line.Code = e.Kind.String(), e.Code
		if e.Receipt != nil {
			line.EventID = e.Receipt.EventID
		}
	}
	ended := ""
	switch d.out.Action {
	case memwrite.Ack:
		ended, line.Outcome, line.Reason = string(d.out.Ended), string(d.out.Ended), ""
	case memwrite.DeadLetter:
		line.Outcome = Rejected // it stays open in the state, so that a later run may find it mended at the service
	case memwrite.Hold:
		line.Outcome = Held
		in.hold(d.out)
	default:
		line.Outcome = Unfinished
		if in.counts.Why == "" || !errors.Is(d.out.Err, transport.ErrGate) { // what shut the gate says more
			in.counts.Why = line.Reason
		}
	}
	if in.state != nil && ended != "" {
		if err := in.state.end(in.writes, d.identity, ended); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
	}
	if err := in.say(line); err != nil {
		return err
	}
	return in.tick()
}

// outlasts tells whether a hold is waited out. One for a setting that this
// process lacks does not pass while it runs.
func (in *ingest) outlasts(out worker.Outcome) bool {
	return in.cfg.WaitHold && !errors.Is(out.Err, memwrite.ErrInvalidInput)
}

// hold ends the run: what waits is given back, and what is on its way ends.
func (in *ingest) hold(out worker.Outcome) {
	if in.outlasts(out) || in.stop {
		return
	}
	in.stop, in.counts.Holding, in.counts.HeldFor = true, true, out.Reason
	in.sched.Go(in.interrupt)
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

// tick keeps the state and the report about once a second, and tells of the
// progress.
func (in *ingest) tick() error {
	now := in.sched.Now()
	if now.Sub(in.committed) >= time.Second {
		in.committed = now
		if err := in.keep(in.writes); err != nil {
			return err
		}
	}
	in.progress(false)
	return nil
}

// keep writes the report first: the state says how much of it counts.
func (in *ingest) keep(ctx context.Context) error {
	if err := in.report.flush(); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	if in.state == nil {
		return nil
	}
	if in.report != nil && in.report.file != nil {
		if err := in.state.setReportSize(ctx, in.report.size); err != nil {
			return fmt.Errorf("the state: %w", err)
		}
	}
	if err := in.state.commit(ctx); err != nil {
		return fmt.Errorf("the state: %w", err)
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

func (in *ingest) close() error {
	ctx := in.writes
	in.endWaits()
	if in.worker != nil {
		_ = in.worker.Close(ctx)
	}
	var err error
	if in.state != nil {
		err = in.keep(ctx)
		err = errors.Join(err, in.state.close(ctx))
	}
	if in.scratch != "" {
		err = errors.Join(err, os.RemoveAll(in.scratch))
	}
	return errors.Join(err, in.report.close())
}
