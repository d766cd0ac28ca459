package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/worker"
)

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
