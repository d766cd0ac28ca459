package inspector

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/memwrite/memwrite-go/internal/sched"
)

const (
	// pace is the least time between two ticks of a stream.
	pace = 200 * time.Millisecond
	// beat is how often an idle stream ticks: what another process did is
	// seen then, and a connection that is gone is found out.
	beat = 5 * time.Second
)

// live streams a tick whenever something moved. A tick says nothing: the page
// fetches what it shows again, so a lost one costs only time.
func (i *Inspector) live(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	// The server's write limit is for answers, not for streams.
	_ = out.SetWriteDeadline(time.Time{})
	_ = out.SetReadDeadline(time.Time{})
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(i.closed, cancel)()
	ch, stop := i.Watch.listen()
	defer stop()
	for {
		if _, err := w.Write([]byte("data: tick\n\n")); err != nil || out.Flush() != nil {
			return
		}
		if sched.Sleep(ctx, i.Streams, pace) != nil {
			return
		}
		if err := i.Streams.Wait(ctx, beat, ch); err != nil && !errors.Is(err, sched.ErrElapsed) {
			return
		}
	}
}
