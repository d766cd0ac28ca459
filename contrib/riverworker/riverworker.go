// Package riverworker runs a memwrite worker on River, a job queue in
// PostgreSQL or SQLite. The job of a write is inserted in the transaction of
// the application's own row, so that the write survives a crash of the
// application, and a row that is rolled back writes nothing: an outbox.
//
//	w, err := riverworker.New(client, riverworker.Config{})
//	settings := &river.Config{}
//	err = w.Setup(settings)
//	jobs, err := river.NewClient(riverpgxv5.New(pool), settings)
//	go riverworker.Run(ctx, jobs, w)
//
//	tx, err := pool.Begin(ctx)
//	// insert your own row with tx, and then
//	_, err = jobs.InsertTx(ctx, tx, riverworker.NewArgs(record), nil)
//	err = tx.Commit(ctx)
//
// A job ends completed when its record is written. It is snoozed, which is not
// an attempt, when it shall come again, and cancelled when it can never pass;
// the cancelled job is the dead letter and carries why.
package riverworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Config holds a worker's numbers. The zero Config is the defaults.
type Config struct {
	// Queue is the River queue that Setup adds; river.QueueDefault.
	Queue string
	// Drain is how long writes on their way may take when Run ends; 20 s.
	Drain time.Duration
	// Dead, if set, keeps dead letters elsewhere as well, before the job is
	// cancelled; after an error the job comes again.
	Dead func(context.Context, worker.DeadLetter) error

	Worker worker.Config
}

// Worker works off jobs of [Args]. It is a river.Worker.
type Worker struct {
	river.WorkerDefaults[Args]
	cfg  Config
	core *worker.Worker
}

// New makes a Worker that writes with client.
func New(client *memwrite.Client, cfg Config) (*Worker, error) {
	if cfg.Drain < 0 {
		return nil, errors.New("riverworker: Drain is negative")
	}
	if cfg.Drain == 0 {
		cfg.Drain = 20 * time.Second
	}
	if cfg.Queue == "" {
		cfg.Queue = river.QueueDefault
	}
	core, err := worker.New(client, cfg.Worker)
	if err != nil {
		return nil, err
	}
	return &Worker{cfg: cfg, core: core}, nil
}

// Setup adds the worker and its queue to a River client's settings, and sets
// what is not set there: dead letters are kept for ever rather than a day, and
// the jobs of a process that was killed are taken up again soon after Timeout.
func (w *Worker) Setup(c *river.Config) error {
	if c.Workers == nil {
		c.Workers = river.NewWorkers()
	}
	if err := river.AddWorkerSafely(c.Workers, w); err != nil {
		return fmt.Errorf("riverworker: %w", err)
	}
	if c.Queues == nil {
		c.Queues = map[string]river.QueueConfig{}
	}
	if _, there := c.Queues[w.cfg.Queue]; !there {
		// Held jobs fill the queue's places, and so nothing more is fetched.
		c.Queues[w.cfg.Queue] = river.QueueConfig{MaxWorkers: w.core.InHand()}
	}
	if c.CancelledJobRetentionPeriod == 0 {
		c.CancelledJobRetentionPeriod = -1
	}
	if c.RescueStuckJobsAfter == 0 {
		c.RescueStuckJobsAfter = max(w.Timeout(nil), c.JobTimeout) + time.Minute
	}
	return nil
}

// Timeout is a little more than the longest a job is kept. It must not be
// endless: River never rescues a job without a timeout, and the record of a
// process that was killed would be lost.
func (w *Worker) Timeout(*river.Job[Args]) time.Duration {
	return w.core.Patience() + min(w.core.Patience(), time.Minute)
}

// Counts reads the worker's counters.
func (w *Worker) Counts() worker.Counts { return w.core.Counts() }

// Work is River's call for one job.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	var meta struct {
		Snoozes int `json:"snoozes"`
	}
	_ = json.Unmarshal(job.Metadata, &meta)
	out := w.core.Handle(ctx, worker.Delivery{
		Data: job.Args.data(), Source: "river job " + strconv.FormatInt(job.ID, 10), Attempt: job.Attempt + meta.Snoozes,
	})
	switch out.Action {
	case memwrite.Ack:
		return nil
	case memwrite.DeadLetter:
		return w.bury(ctx, out)
	}
	return river.JobSnooze(max(out.After, 0))
}

// bury leaves the dead letter with the job.
func (w *Worker) bury(ctx context.Context, out worker.Outcome) error {
	if w.cfg.Dead != nil {
		if err := w.cfg.Dead(ctx, *out.Dead); err != nil {
			return river.JobSnooze(time.Minute)
		}
	}
	letter := *out.Dead
	letter.Record, letter.Raw = nil, nil // the job's own arguments hold it
	if err := river.RecordOutput(ctx, letter); err != nil {
		return err
	}
	return river.JobCancel(errors.New(out.Reason)) // no error of the client: River keeps and shows it
}

// Run starts jobs and works until ctx ends. Then nothing more is fetched, what
// waits is snoozed at once, and what is being written has Config.Drain to end.
// It needs a client whose settings went through Setup.
func Run[TTx any](ctx context.Context, jobs *river.Client[TTx], w *Worker) error {
	if err := jobs.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("riverworker: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-jobs.Stopped():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Drain)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- jobs.Stop(context.WithoutCancel(ctx)) }() // first: what is given back must not be fetched again
	_ = w.core.Close(end)
	if err := <-stopped; err != nil {
		return fmt.Errorf("riverworker: %w", err)
	}
	return nil
}

var _ river.Worker[Args] = (*Worker)(nil)
var _ rivertype.JobArgs = Args{}
