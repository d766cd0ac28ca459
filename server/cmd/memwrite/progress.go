package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/memwrite/memwrite-go/server/internal/ingest"
)

// progress shows how far an ingest is: a bar on a terminal, a line every five
// seconds elsewhere.
type progress struct {
	out   io.Writer
	size  int64 // of the file in bytes; -1 when not known
	bar   *progressbar.ProgressBar
	began time.Time
	last  time.Time
	off   bool
}

const sayEvery = 5 * time.Second

func newProgress(out io.Writer, size int64, off bool) *progress {
	p := &progress{out: out, size: size, began: time.Now(), last: time.Now(), off: off}
	if f, ok := out.(*os.File); ok && !off && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(size, progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(24), progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionSetElapsedTime(true))
	}
	return p
}

func (p *progress) show(c ingest.Counts) {
	switch {
	case p.off:
	case p.bar != nil:
		p.bar.Describe(p.words(c))
		_ = p.bar.Set64(c.Bytes)
	case time.Since(p.last) >= sayEvery:
		p.last = time.Now()
		fmt.Fprintf(p.out, "memwrite: %s%s\n", p.words(c), p.left(c))
	}
}

func (p *progress) words(c ingest.Counts) string {
	done := c.Records - c.Before
	rate := float64(done) / max(time.Since(p.began).Seconds(), 0.001)
	s := fmt.Sprintf("%s, %d stored, %d rejected, %.0f/s", records(c.Records), c.Before+c.Stored+c.Already, c.Rejected, rate)
	if c.Holding {
		s += ", holding"
	}
	return s
}

// left is the share that is read, and how long the rest takes at this pace.
func (p *progress) left(c ingest.Counts) string {
	if p.size <= 0 || c.Bytes <= 0 {
		return ""
	}
	share := min(float64(c.Bytes)/float64(p.size), 1)
	eta := time.Duration(float64(time.Since(p.began)) * (1 - share) / share)
	return fmt.Sprintf(", %.0f %%, %v left", 100*share, eta.Round(time.Second))
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
