package mockserver

import (
	"cmp"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// At is where the engine asks whether something goes wrong now.
func (f *faults) At(p protocol.Point, t protocol.Task) protocol.Fault {
	if !f.some.Load() {
		return protocol.Fault{}
	}
	switch p {
	case protocol.Inference:
		return f.provider(t)
	case protocol.Projecting:
		if f.strike(struck(t), of(t), FailProjection) != nil {
			return protocol.Fault{Act: protocol.FailWith, Failure: protocol.Fail(protocol.ProjectionError, "the vector store is away")}
		}
	case protocol.Wakeup:
		return f.wakeup(t)
	case protocol.Arrival:
		if a := f.strike(struck(t), of(t), LateArrival); a != nil {
			return protocol.Fault{Act: protocol.Late, Delay: int64(a.fault.Delay)}
		}
	default:
		return f.runner(p, t)
	}
	return protocol.Fault{}
}

// struck is the task as a strike names it.
func struck(t protocol.Task) func() Strike {
	return func() Strike {
		s := Strike{TaskID: t.ID}
		if c := t.Command; c != nil {
			s.Key = cmp.Or(c.Key, c.ClientRef)
			if t.Kind == protocol.Turn {
				s.Key = c.Text
			}
		}
		return s
	}
}

// of matches the faults that are for a task: by its key, its reference or the
// text of its turn. A task that SUCCEEDED has forgotten them, and is known by
// the hash of its key or reference still.
func of(t protocol.Task) func(*Fault) bool {
	return func(f *Fault) bool {
		switch c := t.Command; {
		case f.Key == "":
			return true
		case c != nil:
			return f.Key == c.Key || f.Key == c.ClientRef || (t.Kind == protocol.Turn && f.Key == c.Text)
		case t.Kind == protocol.MemorySyncAdd:
			return t.Identity.Hash == protocol.ClientRef(t.Workspace, t.Scope.Tenant, t.Scope.Project, t.Scope.EndUser, f.Key)
		}
		return t.Identity.Hash == protocol.CommandKey(t.Workspace, f.Key)
	}
}

// Quiet says that no fault waits for a runner, a wake-up or a projection.
func (f *faults) Quiet(string) bool {
	if !f.some.Load() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		switch a.fault.Kind {
		case KillRunner, FreezeRunner, ExpireLease, LoseWakeup, DuplicateWakeup, DelayWakeup, FailProjection:
			if !a.off {
				return false
			}
		}
	}
	return true
}

func (f *faults) provider(t protocol.Task) protocol.Fault {
	a := f.strike(struck(t), of(t), ProviderTimeout, ProviderInvalid, ProviderDown, ProviderRefuses, ProviderRejects)
	if a == nil {
		return protocol.Fault{}
	}
	failure := map[Kind]*protocol.Failure{
		ProviderTimeout: protocol.Fail(protocol.ProviderTimeout, "the model did not answer in time"),
		ProviderInvalid: protocol.Fail(protocol.InvalidOutput, "the model's answer is not a list of facts"),
		ProviderDown:    protocol.Fail(protocol.Infrastructure, "the model cannot be reached"),
		ProviderRefuses: protocol.Fail(protocol.Authorization, "the model's provider refuses the server's key"),
		ProviderRejects: protocol.Fail(protocol.Rejected, "the model refuses the input"),
	}[a.fault.Kind]
	return protocol.Fault{Act: protocol.FailWith, Failure: failure}
}

func (f *faults) wakeup(t protocol.Task) protocol.Fault {
	a := f.strike(struck(t), of(t), LoseWakeup, DuplicateWakeup, DelayWakeup)
	if a == nil {
		return protocol.Fault{}
	}
	switch a.fault.Kind {
	case LoseWakeup:
		return protocol.Fault{Act: protocol.Lose}
	case DuplicateWakeup:
		return protocol.Fault{Act: protocol.Double}
	}
	return protocol.Fault{Act: protocol.Delay, Delay: int64(a.fault.Delay)}
}

func (f *faults) runner(p protocol.Point, t protocol.Task) protocol.Fault {
	matches := of(t)
	a := f.strike(struck(t), func(fault *Fault) bool { return string(fault.Point) == string(p) && matches(fault) }, KillRunner, FreezeRunner, ExpireLease)
	if a == nil {
		return protocol.Fault{}
	}
	switch a.fault.Kind {
	case KillRunner:
		return protocol.Fault{Act: protocol.Kill}
	case ExpireLease:
		return protocol.Fault{Act: protocol.Expire}
	}
	return protocol.Fault{Act: protocol.Freeze, Release: a.gate}
}
