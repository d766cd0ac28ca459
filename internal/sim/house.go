package sim

import (
	"context"
	"time"

	"github.com/memwrite/memwrite-go/internal/backend"
	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
	"github.com/memwrite/memwrite-go/internal/service"
)

// Worker lives through one schedule after the other. It keeps what is dear to
// make and holds nothing of a schedule: the service with its routes and keys.
type Worker struct {
	door    *door
	service *service.Service
	pool    pool
	wrong   func(*world) // of tests: looks for one more violation after each step

	// Open makes the empty store of a schedule, whose first record number is
	// the argument; Run closes it. nil keeps everything in memory.
	Open func(first int64) protocol.Store
}

// NewWorker makes a worker, for one goroutine.
func NewWorker() *Worker {
	h := &Worker{door: &door{}}
	var keys []service.Key
	for i := range 2 {
		ws := workspaceID(i)
		keys = append(keys,
			service.NewKey(memorySyncKey(ws), ws, service.ServiceMemorySync, service.ScopeMemoryAll, service.ScopeProjectsRead),
			service.NewKey(fishMemKey(ws), ws, service.ServiceFishMem, service.ScopeMemoryRead, service.ScopeMemoryWrite, service.ScopeOperationsRead))
	}
	h.service = service.New(h.door, service.NewKeys(keys...), h.door, func(string) bool { return false }, service.Options{})
	return h
}

func memorySyncKey(workspace string) string { return "ms-" + workspace }
func fishMemKey(workspace string) string    { return "fm-" + workspace }

// door is where the one service of a worker meets the nodes of the schedule
// that runs: a request's context says which node it came to.
type door struct{ sched.Scheduler }

type nodeKey struct{}

func (*door) to(ctx context.Context) *backend.Backend { return ctx.Value(nodeKey{}).(*node).backend }

var _ service.Backend = (*door)(nil)

func (d *door) Submit(ctx context.Context, w service.Write) (service.Task, bool, error) {
	return d.to(ctx).Submit(ctx, w)
}

func (d *door) Await(ctx context.Context, workspace, id string, wait time.Duration, done func(service.Task) bool) (service.Task, error) {
	return d.to(ctx).Await(ctx, workspace, id, wait, done)
}

func (d *door) Task(ctx context.Context, workspace, id string) (service.Task, error) {
	return d.to(ctx).Task(ctx, workspace, id)
}

func (d *door) Tasks(ctx context.Context, workspace string, state service.State, page service.Page) ([]service.Task, error) {
	return d.to(ctx).Tasks(ctx, workspace, state, page)
}

func (d *door) Redrive(ctx context.Context, workspace, id string) (service.Task, error) {
	return d.to(ctx).Redrive(ctx, workspace, id)
}

func (d *door) Records(ctx context.Context, workspace string, scope service.Scope, page service.Page) ([]service.Record, error) {
	return d.to(ctx).Records(ctx, workspace, scope, page)
}

func (d *door) Record(ctx context.Context, workspace, svc, id string) (service.Record, error) {
	return d.to(ctx).Record(ctx, workspace, svc, id)
}

func (d *door) RecordByNumber(ctx context.Context, workspace string, n int64) (service.Record, error) {
	return d.to(ctx).RecordByNumber(ctx, workspace, n)
}

func (d *door) Search(ctx context.Context, workspace string, scope service.Scope, query string, limit int) ([]service.Record, error) {
	return d.to(ctx).Search(ctx, workspace, scope, query, limit)
}

func (d *door) Delete(ctx context.Context, workspace string, del service.Deletion) ([]string, bool, error) {
	return d.to(ctx).Delete(ctx, workspace, del)
}

func (d *door) Usage(ctx context.Context, workspace string) (service.Usage, error) {
	return d.to(ctx).Usage(ctx, workspace)
}

func (d *door) Backlog(ctx context.Context, workspace string) (service.Backlog, error) {
	return d.to(ctx).Backlog(ctx, workspace)
}
