package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
)

func TestVerdictTable(t *testing.T) {
	t.Parallel()
	failed := func(class memwrite.FailureClass) *memwrite.Error {
		return &memwrite.Error{Kind: memwrite.KindEventFailed, Event: &memwrite.Event{Status: memwrite.Failed, FailureClass: class}}
	}
	for _, tc := range []struct {
		err  error
		want memwrite.Action
	}{
		{nil, memwrite.Ack},
		{&memwrite.Error{Kind: memwrite.KindRateLimited}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindServer}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindUnknownOutcome}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindInProgress}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindStillPending}, memwrite.RetryAfter},
		{&memwrite.Error{}, memwrite.RetryAfter},
		{&memwrite.Error{Kind: 999}, memwrite.RetryAfter},
		{errors.New("somebody else's"), memwrite.RetryAfter},
		{context.DeadlineExceeded, memwrite.RetryAfter},
		{&memwrite.Error{Kind: memwrite.KindUnauthorized}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindForbidden}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindInsufficientCredits}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindQuotaExceeded}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindNotFound}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindRedirect}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindUnsupported}, memwrite.Hold},
		{&memwrite.Error{Kind: memwrite.KindInvalidInput}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindTooLarge}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindConflict}, memwrite.DeadLetter},
		{&memwrite.Error{Kind: memwrite.KindRefReused}, memwrite.DeadLetter},
		{failed("conflict"), memwrite.DeadLetter},
		{failed(""), memwrite.RedriveEvent},
		{failed("provider_timeout"), memwrite.RedriveEvent},
		{context.Canceled, memwrite.GiveBack},
		{&memwrite.Error{Kind: memwrite.KindCanceled}, memwrite.GiveBack},
		{fmt.Errorf("wrapped: %w", &memwrite.Error{Kind: memwrite.KindConflict}), memwrite.DeadLetter},
	} {
		if got := memwrite.VerdictOf(tc.err); got.Action != tc.want || got.Reason == "" {
			t.Errorf("%v: %v (%s), want %v", tc.err, got.Action, got.Reason, tc.want)
		}
	}
}
