package ingest

import (
	"context"
	"fmt"
	"time"
)

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
