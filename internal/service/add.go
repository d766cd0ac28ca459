package service

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memwrite/memwrite-go/internal/api"
)

// MaxClientRef is how long a client_ref may be, in characters.
const MaxClientRef = 128

// AddMemory answers POST /memory/add: it waits for the task it made, or for
// the one its client_ref names.
func (s *Service) AddMemory(w http.ResponseWriter, r *http.Request, params api.AddMemoryParams) {
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
	write := s.addFields(o, scope)
	write.Workspace = c.key.Workspace
	ref, hasRef := o.text("client_ref", MaxClientRef)
	if hasRef && blank(ref) {
		o.fail("client_ref", "length", "must not be blank")
	}
	write.Key = ref
	if f := s.textFailure(o, write.Text); f != nil {
		s.refuse(w, r, f)
		return
	}
	if len(write.Metadata) > s.opts.MaxMetadata {
		s.refuse(w, r, detail(http.StatusRequestEntityTooLarge, "metadata is too large"))
		return
	}

	task, replayed, err := s.perform(r.Context(), write, s.opts.InlineWait)
	if err != nil {
		s.memoryFailure(w, r, err)
		return
	}
	s.answerAdd(w, r, task, ref, replayed, write.Text)
}

// perform submits a write and waits for its task, no longer than most.
func (s *Service) perform(ctx context.Context, w Write, most time.Duration) (task Task, replayed bool, err error) {
	end := s.sched.Now().Add(most)
	w.Wait = most
	task, replayed, err = s.submit(ctx, w)
	if left := end.Sub(s.sched.Now()); err == nil && !task.State.Ended() && left > 0 {
		task, err = s.backend.Await(ctx, w.Workspace, task.ID, left, func(t Task) bool { return t.State.Ended() })
	}
	return task, replayed, err
}

// maxTTLMinutes is what a time.Duration holds, about 292 years.
const maxTTLMinutes = int64(math.MaxInt64 / time.Minute)

// answerAdd says what became of an add. A twin that came while the first call
// ran is a repeat like any other.
func (s *Service) answerAdd(w http.ResponseWriter, r *http.Request, task Task, ref string, replayed bool, text string) {
	switch {
	case task.State == Failed:
		s.refuse(w, r, fail(http.StatusInternalServerError, "EXTRACTION_FAILED", "extraction failed and nothing was stored"))
	case task.State != Succeeded:
		f := detail(http.StatusServiceUnavailable, "the extraction is still running; send the same request again")
		f.RetryAfter, f.HasRetry = time.Second, true
		s.refuse(w, r, f)
	case replayed && ref != "":
		w.Header().Set("Idempotent-Replayed", "true")
		answer(w, http.StatusOK, skipped("already_ingested", numbers(task.Records), ref, 0))
	case len(task.Records) == 0:
		reason := s.opts.NothingReason
		if s.low(text) {
			reason = s.opts.LowValueReason
		}
		answer(w, http.StatusOK, skipped(reason, []int64{}, ref, task.Candidates))
	default:
		// One may have been forgotten since.
		first := max(slices.IndexFunc(task.Records, func(r Record) bool { return r.Text != "" }), 0)
		answerMemory(w, http.StatusCreated, &task.Records[first])
	}
}

type skippedBody struct {
	Status     string  `json:"status"`
	Reason     string  `json:"reason"`
	MemoryIDs  []int64 `json:"memory_ids"`
	ClientRef  *string `json:"client_ref"`
	Extracted  int     `json:"candidates_extracted"`
	StoredHere int     `json:"candidates_stored"`
}

func skipped(reason string, ids []int64, ref string, extracted int) skippedBody {
	return skippedBody{"skipped", reason, ids, optional(ref), extracted, 0}
}

func numbers(records []Record) []int64 {
	out := make([]int64, len(records))
	for i, r := range records {
		out[i] = r.Number
	}
	return out
}

// addFields takes what /memory/add and an item of /memory/bulk-add share.
func (s *Service) addFields(o *object, scope Scope) Write {
	text, ok := o.text("text", 0)
	if !ok {
		text, ok = o.text("content", 0)
	}
	if !ok && len(o.problems()) == 0 {
		o.fail("text", "missing", "is required")
	}
	out := Write{Operation: OpAdd, Scope: scope, Text: text, Importance: 0.5, Metadata: o.document("metadata")}
	out.Source, _ = o.text("source", 64)
	out.EventType, _ = o.text("event_type", 64)
	out.SessionID, _ = o.text("session_id", 0)
	for _, tag := range o.texts("tags", 1000) {
		if tag = strings.ToLower(strings.TrimSpace(tag)); tag != "" && !slices.Contains(out.Tags, tag) {
			out.Tags = append(out.Tags, tag)
		}
	}
	if ttl := o.integer("ttl_minutes", 1, maxTTLMinutes); ttl != nil {
		out.TTL = time.Duration(*ttl) * time.Minute
	}
	if importance := o.number("importance", 0, 1); importance != nil {
		out.Importance = *importance
	}
	out.NoDedup = !o.boolean("deduplicate", true)
	return out
}

// textFailure is the 422 for a body with problems or a text that is too short
// and not a filler, which is skipped instead.
func (s *Service) textFailure(o *object, text string) *failure {
	if len(o.problems()) == 0 {
		trimmed := strings.TrimSpace(text)
		if n := utf8.RuneCountInString(trimmed); trimmed == "" || (n < s.opts.MinText && !s.low(trimmed)) {
			o.fail("text", "length", "must be at least %d characters", max(s.opts.MinText, 1))
		}
	}
	return invalid(o)
}

func invalid(o *object) *failure {
	if len(o.problems()) == 0 {
		return nil
	}
	f := fail(http.StatusUnprocessableEntity, "VALIDATION_ERROR", "the request is not valid")
	f.Details = o.problems()
	return f
}

// readMemorySync reads a body; null means absent on this wire.
func (s *Service) readMemorySync(w http.ResponseWriter, r *http.Request) (*object, *failure) {
	o, err := readObject(w, r, s.opts.MaxBody, false)
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, errTooLarge):
		return nil, detail(http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, errContentType), errors.Is(err, errNotObject), errors.Is(err, errTooDeep):
		f := fail(http.StatusUnprocessableEntity, "VALIDATION_ERROR", err.Error())
		f.Details = []issue{{Field: "body", Type: "value", Message: err.Error()}}
		return nil, f
	}
	return nil, fail(http.StatusBadRequest, "BAD_REQUEST", "the body could not be read")
}

// memoryFailure answers a backend's refusal on MemorySync.
func (s *Service) memoryFailure(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, ErrQuotaSilent):
		answer(w, http.StatusOK, json.RawMessage(`{"status":"ok"}`))
	case errors.Is(err, ErrQuotaStrict), errors.Is(err, ErrCredits):
		f := fail(http.StatusTooManyRequests, "limit_exceeded", "Monthly add limit reached")
		f.Shape = shapeQuota
		s.refuse(w, r, f)
	case errors.Is(err, ErrNotFound):
		s.refuse(w, r, detail(http.StatusNotFound, "Memory not found"))
	default:
		s.unexpected(w, r, err)
	}
}

// unexpected is a 500, unless the caller has gone and reads no answer at all.
// A store that is away for a while is a 503: the same request may be sent again.
func (s *Service) unexpected(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	if errors.Is(err, ErrUnavailable) {
		s.opts.Log.Warn("the store is not available", "method", r.Method, "request_id", c.requestID)
		f := fail(http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "the store is not available; send the same request again")
		f.RetryAfter, f.HasRetry = time.Second, true
		f.write(w, c.wire, c.requestID)
		return
	}
	if r.Context().Err() == nil {
		s.opts.Log.Error("a request failed", "method", r.Method, "request_id", c.requestID, "error_type", typeName(err))
	}
	s.internal(w, c)
}
