package service

import (
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/api"
)

// maxBulk is how many items /memory/bulk-add takes.
const maxBulk = 50

type bulkResult struct {
	Index     int     `json:"index"`
	Status    string  `json:"status"`
	MemoryIDs []int64 `json:"memory_ids"`
	Reason    *string `json:"reason"`
}

// bulk is one call on its way through its items.
type bulk struct {
	*call
	scope Scope
	dedup bool
	end   time.Time // when its callers have waited as long as one add may take
	payer string    // the task that carries the call's charge; "" as long as none SUCCEEDED
}

// BulkAddMemories answers POST /memory/bulk-add. Nothing in it has an identity:
// the same call again is other writes, and only the near-duplicate filter
// stands between them and copies.
//
// A call is charged once, whatever it holds. Items go one after the other, and
// each reserves for itself until one has SUCCEEDED: that one carries the charge,
// and those behind it cost nothing whatever becomes of them. One that FAILED
// has given its reservation back. So a call that stored something, or found
// nothing worth it, costs one add, and one of which every item failed costs
// none.
func (s *Service) BulkAddMemories(w http.ResponseWriter, r *http.Request, params api.BulkAddMemoriesParams) {
	c := callOf(r)
	scope, f := s.memoryScope(c, params.XEndUserID, params.XProjectID, params.XTenantID)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	o, f := s.readMemorySync(w, r)
	if f != nil {
		s.refuse(w, r, f)
		return
	}
	if !o.has("items") {
		o.fail("items", "missing", "is required")
	}
	items := o.list("items", 1, maxBulk)
	b := &bulk{call: c, scope: scope, dedup: o.boolean("deduplicate", true), end: s.sched.Now().Add(s.opts.InlineWait)}
	if f := invalid(o); f != nil {
		s.refuse(w, r, f)
		return
	}
	results := make([]bulkResult, 0, len(items))
	counts := map[string]int{}
	for i, raw := range items {
		result, err := s.bulkItem(r, b, i, raw)
		if err != nil {
			s.memoryFailure(w, r, err)
			return
		}
		counts[result.Status]++
		results = append(results, result)
	}
	answer(w, http.StatusMultiStatus, map[string]any{
		"total": len(results), "created": counts["created"], "skipped": counts["skipped"], "rejected": counts["rejected"], "results": results,
	})
}

func (s *Service) bulkItem(r *http.Request, b *bulk, i int, raw []byte) (bulkResult, error) {
	result := bulkResult{Index: i, Status: "rejected", MemoryIDs: []int64{}}
	reject := func(reason string) (bulkResult, error) {
		result.Reason = &reason
		return result, nil
	}
	scope := b.scope
	o, err := parseObject(raw, false)
	if err != nil {
		return reject("the item must be an object")
	}
	if user, ok := o.text("end_user_id", 0); ok && !blank(user) {
		scope.User = user
	}
	write := s.addFields(o, scope)
	write.Workspace, write.NoDedup, write.PaidBy = b.key.Workspace, !b.dedup, b.payer
	trimmed := strings.TrimSpace(write.Text)
	switch {
	case len(o.problems()) > 0:
		return reject(o.problems()[0].Field + " " + o.problems()[0].Message)
	case trimmed == "", utf8.RuneCountInString(trimmed) < s.opts.MinText && !s.low(trimmed):
		return reject("text is too short")
	case len(write.Metadata) > s.opts.MaxMetadata:
		return reject("metadata is too large")
	}
	// An item that is still running at the end is the last that was tried: none
	// behind it waits for what becomes of its charge.
	left := b.end.Sub(s.sched.Now())
	if left <= 0 {
		return reject("the call took too long; send the item again")
	}
	task, _, err := s.perform(r.Context(), write, left)
	if err == nil && task.State == Succeeded && b.payer == "" {
		b.payer = task.ID
	}
	switch {
	case errors.Is(err, ErrQuotaSilent), errors.Is(err, ErrQuotaStrict):
		result.Status = "skipped"
		return reject("limit_exceeded")
	case err != nil:
		return result, err
	case task.State != Succeeded:
		return reject("extraction did not finish")
	case len(task.Records) == 0 || task.Deduplicated:
		result.Status, result.MemoryIDs = "skipped", numbers(task.Records)
		if task.Deduplicated {
			return reject("duplicate")
		}
		return reject(s.opts.NothingReason)
	}
	result.Status, result.MemoryIDs = "created", numbers(task.Records)
	return result, nil
}
