package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/worker"
)

// Every row of the verdict table, on the wire that gives rise to it.
func TestEachAnswerHasItsOutcome(t *testing.T) {
	t.Parallel()
	const quota = `{"error":{"code":"limit_exceeded","message":"m"}}`
	for name, tc := range map[string]struct {
		status int
		answer string
		want   memwrite.Action
	}{
		"stored":        {201, stored, memwrite.Ack},
		"skipped":       {200, `{"status":"skipped","reason":"low_value"}`, memwrite.Ack},
		"known, no ids": {200, `{"status":"skipped","reason":"already_ingested","memory_ids":[]}`, memwrite.Ack},
		"rate limited":  {429, `{"error":{"code":"RATE_LIMIT_EXCEEDED","message":"m","retry_after":3}}`, memwrite.RetryAfter},
		"server":        {500, `{}`, memwrite.RetryAfter},
		"cut short":     {200, `{"id":`, memwrite.RetryAfter},
		"quota, said":   {429, quota, memwrite.Hold},
		"quota, silent": {200, `{"status":"ok"}`, memwrite.Hold},
		"unauthorized":  {401, `{}`, memwrite.Hold},
		"forbidden":     {403, `{}`, memwrite.Hold},
		"not found":     {404, `{}`, memwrite.Hold},
		"redirect":      {302, `{}`, memwrite.Hold},
		"unsupported":   {501, `{}`, memwrite.Hold},
		"invalid":       {422, `{"error":{"code":"VALIDATION_ERROR","message":"m"}}`, memwrite.DeadLetter},
		"too large":     {413, `{}`, memwrite.DeadLetter},
		"a conflict":    {409, `{"error":{"code":"VERSION_CONFLICT","message":"m"}}`, memwrite.DeadLetter},
		"in progress":   {409, `{"code":"IDEMPOTENCY_INCOMPLETE","message":"m"}`, memwrite.RetryAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				service := &wire{answer: func(int, *http.Request, []byte) (int, string) { return tc.status, tc.answer }}
				w := service.worker(t, worker.Config{})
				out := w.Handle(t.Context(), note("1", "acme", fact(1)))
				want(t, out, tc.want)
				if (out.Dead != nil) != (tc.want == memwrite.DeadLetter) || out.Identity != "note-1" {
					t.Errorf("%+v", out)
				}
				if tc.want == memwrite.RetryAfter && out.After <= 0 {
					t.Error("a delivery that comes again at once")
				}
				if tc.want == memwrite.Hold && out.After != 5*time.Minute {
					t.Errorf("held for %v", out.After)
				}
			})
		})
	}
}

func TestOtherTextUnderAKnownReferenceIsADeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, w := inBubble(t, worker.Config{})
		first, other := note("1", "acme", fact(1)), note("1", "acme", "Our office moved from Bristol to Cardiff in May.")
		want(t, w.Handle(t.Context(), first), memwrite.Ack)
		want(t, w.Handle(t.Context(), first), memwrite.Ack)
		out := w.Handle(t.Context(), other)
		want(t, out, memwrite.DeadLetter)
		if !errors.Is(out.Err, memwrite.ErrRefReused) || string(out.Dead.Data()) != string(other.Data) ||
			out.Dead.Identity != "note-1" || out.Dead.Kind == "" || out.Dead.Source != "test" || out.Dead.Attempt != 1 || out.Dead.ID == "" {
			t.Errorf("%+v", out.Dead)
		}
		srv.StoredOnce(t, "note-1")
		if c := w.Counts(); c.Stored != 1 || c.Already != 1 || c.Dead != 1 || c.InHand != 0 || c.Writing != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// The text may be another one, and nobody can tell now: it must not be
// acknowledged as long as somebody may be able to later.
func TestAReadBackThatFailsIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		status := 503
		service := &wire{answer: func(_ int, r *http.Request, _ []byte) (int, string) {
			if r.Method == http.MethodPost {
				return 200, `{"status":"skipped","reason":"already_ingested","memory_ids":[7]}`
			}
			return status, `{}`
		}}
		w := service.worker(t, worker.Config{})
		want(t, w.Handle(t.Context(), note("1", "acme", fact(1))), memwrite.RetryAfter)
		status = 404 // it was forgotten since
		want(t, w.Handle(t.Context(), note("1", "acme", fact(1))), memwrite.Ack)
		if c := w.Counts(); c.Unverified != 1 {
			t.Errorf("%+v", c)
		}
	})
}

func TestWhatIsNoRecordIsADeadLetterAndSendsNothing(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		``, `{`, `null`, `[]`, `{"id":"1","end_user":"acme","text":"t"} x`, `{"end_user":"acme","text":"no identity at all"}`,
		`{"write":"turn","end_user":"acme","text":"a turn without a speaker","occurred_at":"2026-06-16T09:30:00Z"}`,
		`{"id":"1","versions":2,"end_user":"acme","text":"a field nobody knows"}`, "{\"id\":\"1\",\"text\":\"\xff\"}",
		`{"write":"upsert","id":"1","text":"t"}`, `{"id":"1","ref":"x","text":"t"}`, `{"kind":"Note","id":"1","text":"t"}`,
		`{"id":"1","end_user":"acme","text":""}`, `{"id":"1","text":"nobody's memory"}`,
	} {
		service := &wire{answer: func(int, *http.Request, []byte) (int, string) { return 201, stored }}
		w := service.worker(t, worker.Config{})
		out := w.Handle(t.Context(), worker.Delivery{Data: []byte(data)})
		if out.Action != memwrite.DeadLetter || string(out.Dead.Data()) != data || service.requests() != 0 {
			t.Errorf("%q: %v, %d requests", data, out.Action, service.requests())
		}
		kept, err := json.Marshal(out.Dead)
		var back worker.DeadLetter
		if err != nil || json.Unmarshal(kept, &back) != nil || back.ID != out.Dead.ID || string(back.Data()) != data {
			t.Errorf("%q does not survive its dead letter: %s", data, kept)
		}
	}
}

func TestRecordsOfAUserKeepTheirOrderAndOthersPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &wire{answer: func(_ int, r *http.Request, _ []byte) (int, string) {
			d := time.Second
			if r.Header.Get("X-End-User-Id") == "slow" {
				d = time.Minute / 3
			}
			time.Sleep(d)
			return 201, stored
		}}
		w := service.worker(t, worker.Config{Concurrency: 2})
		var all sync.WaitGroup
		began := time.Now()
		done := make([]time.Duration, 6)
		for i := range done {
			user := "slow"
			if i >= 3 {
				user = "quick" + string(rune('0'+i))
			}
			all.Go(func() {
				want(t, w.Handle(t.Context(), note(user+"-"+string(rune('a'+i)), user, fact(i))), memwrite.Ack)
				done[i] = time.Since(began)
			})
			synctest.Wait()
		}
		all.Wait()
		for i, at := range []time.Duration{20, 40, 60, 1, 2, 3} {
			if done[i] != at*time.Second {
				t.Errorf("delivery %d ended after %v, want %ds", i, done[i], at)
			}
		}
		if service.most > 2 {
			t.Errorf("%d at a time, want at most 2", service.most)
		}
	})
}

// One record that always fails takes a slot while it is tried and no longer.
func TestAPoisonRecordBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &wire{answer: func(_ int, _ *http.Request, body []byte) (int, string) {
			if strings.Contains(string(body), "poison") {
				return 500, `{}`
			}
			return 201, stored
		}}
		w := service.worker(t, worker.Config{Concurrency: 1})
		poison := note("poison", "acme", fact(0))
		var after []time.Duration
		for i := range 6 {
			poison.Attempt = i + 1
			out := w.Handle(t.Context(), poison)
			want(t, out, memwrite.RetryAfter)
			after = append(after, out.After)
			want(t, w.Handle(t.Context(), note("sound"+string(rune('0'+i)), "acme", fact(i))), memwrite.Ack)
		}
		for i, d := range after {
			if top := 5 * time.Second << i; d < top/2 || d > top {
				t.Errorf("delivery %d comes again after %v, want %v to %v", i+1, d, top/2, top)
			}
		}
	})
}

func TestTheBrokerIsToldWhileADeliveryIsInWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &wire{answer: func(int, *http.Request, []byte) (int, string) {
			time.Sleep(25 * time.Second)
			return 201, stored
		}}
		w := service.worker(t, worker.Config{})
		d := note("1", "acme", fact(1))
		told := 0
		d.ExtendEvery = 10 * time.Second
		d.Extend = func(context.Context) error { told++; return errors.New("the broker is away for a moment") }
		want(t, w.Handle(t.Context(), d), memwrite.Ack)
		time.Sleep(time.Minute)
		if told != 2 {
			t.Errorf("told %d times in 25 s, want 2", told)
		}
	})
}
