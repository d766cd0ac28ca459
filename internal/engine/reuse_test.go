package engine

import (
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/sched"
)

// The heartbeat and an extractor that ran aside may hold on to a runner when it
// has ended: one they know must not carry another task.
func TestARunnerThatOthersKnowIsNotReused(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(*runner){
		"heartbeat": func(r *runner) { r.met = true },
		"extractor": func(r *runner) { r.inferring.aside = true },
	} {
		e := New(Config{Scheduler: sched.Real()})
		r := e.newRunner(protocol.Task{ID: "task_1"}, protocol.Workspace{})
		meet(r)
		r.end(nil)
		e.reuse(r)
		if e.spare.Get() != nil {
			t.Errorf("%s: the runner is there for the next task", name)
		}
		e.Close()
	}
}
