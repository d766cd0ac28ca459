package service

import (
	"net/http"
	"time"
)

// oldBacklog is how old the oldest waiting task may be before health says
// degraded.
const oldBacklog = 5 * time.Minute

// FishMemHealth answers GET /v1/health: 200 for ok and for degraded.
func (s *Service) FishMemHealth(w http.ResponseWriter, r *http.Request) {
	b, err := s.backend.Backlog(r.Context(), callOf(r).key.Workspace)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	now := s.sched.Now()
	status := "ok"
	if b.Dead > 0 || b.ProviderUnavailable || (!b.OldestPending.IsZero() && now.Sub(b.OldestPending) >= oldBacklog) {
		status = "degraded"
	}
	oldest := optionalStamp(b.OldestPending, stamp)
	answer(w, http.StatusOK, map[string]any{
		"status": status, "checked_at": stamp(now),
		"engine":      map[string]any{"configured": true, "initialized": true, "code": nil},
		"operations":  map[string]any{"pending": b.Pending, "failed": b.Dead, "oldest_pending_at": oldest},
		"tasks":       map[string]any{"pending": b.Pending, "dead": b.Dead, "oldest_pending_at": oldest},
		"projections": map[string]any{"vector_pending": b.ProjectionsPending, "derived_pending": 0},
		"warnings":    map[string]any{"last_24h": 0},
	})
}

type accountBody struct {
	Granted   *int64  `json:"granted"`
	Available *int64  `json:"available"`
	Reserved  int64   `json:"reserved"`
	Settled   int64   `json:"settled"`
	Released  int64   `json:"released"`
	ResetsAt  *string `json:"resets_at,omitempty"`
}

func accountView(a Account) accountBody {
	out := accountBody{Reserved: a.Reserved, Settled: a.Settled, Released: a.Released, ResetsAt: optionalStamp(a.ResetsAt, stamp)}
	if a.Limited {
		out.Granted, out.Available = &a.Granted, &a.Available
	}
	return out
}

// GetUsage answers GET /v1/usage, which only this server has.
func (s *Service) GetUsage(w http.ResponseWriter, r *http.Request) {
	u, err := s.backend.Usage(r.Context(), callOf(r).key.Workspace)
	if err != nil {
		s.fishFailure(w, r, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{"credits": accountView(u.Credits), "adds": accountView(u.Adds), "balanced": u.Balanced})
}
