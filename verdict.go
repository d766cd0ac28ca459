package memwrite

import (
	"context"
	"errors"
	"time"
)

// Action is what a queue worker does with a message.
type Action int

// The actions.
const (
	// Ack: done. Every typed result comes with a nil error, also "skipped".
	Ack Action = iota
	// RetryAfter: deliver again, no sooner than Verdict.After.
	RetryAfter
	// Hold: keep it and tell a human; nothing is wrong with the message.
	Hold
	// DeadLetter: this message can never pass.
	DeadLetter
	// RedriveEvent: call Redrive with Error.Event's id, at most
	// MaxRedrives times a record, then dead-letter.
	RedriveEvent
	// GiveBack: return it uncounted; the worker is stopping. Its context was
	// cancelled, whatever the cause it was given.
	GiveBack
)

// MaxRedrives is how often one record is worth a Redrive.
const MaxRedrives = 3

func (a Action) String() string {
	switch a {
	case Ack:
		return "ack"
	case RetryAfter:
		return "retry"
	case Hold:
		return "hold"
	case DeadLetter:
		return "dead-letter"
	case RedriveEvent:
		return "redrive"
	case GiveBack:
		return "give back"
	}
	return "unknown"
}

// Verdict is an Action with its reason.
type Verdict struct {
	Action Action
	After  time.Duration // for RetryAfter; 0 leaves the delay to the queue's own back-off
	Reason string        // for a log line; never holds secrets or memory text
}

// VerdictOf tells a queue worker what to do after a call that gave err. An
// error of somebody else, and one of a kind not known here, is RetryAfter: a
// message must not be lost to a mistake. A write without an identity whose
// outcome is unknown is Hold: nobody can send it again without doubling it. So is
// whatever New refuses, and a call to a service that the client was not given,
// although both are ErrInvalidInput: no message is at fault for a missing setting.
func VerdictOf(err error) Verdict {
	if err == nil {
		return Verdict{Action: Ack, Reason: "the service gave a definite answer"}
	}
	var e *Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) {
			return Verdict{Action: GiveBack, Reason: "the caller stopped"}
		}
		return Verdict{Action: RetryAfter, Reason: "not an error of this package"}
	}
	if e.nameless {
		return Verdict{Action: Hold, Reason: "the write has no identity and may have landed; sent again it may be there twice"}
	}
	if e.Kind == KindCanceled || errors.Is(err, context.Canceled) && !decided(e.Kind) {
		return Verdict{Action: GiveBack, Reason: "the caller stopped; the write keeps its identity"}
	}
	if e.settings {
		return Verdict{Action: Hold, Reason: "the client's settings must be mended (" + e.Field + " " + e.Message + "); the message is sound"}
	}
	switch e.Kind {
	case KindUnauthorized, KindForbidden:
		return Verdict{Action: Hold, Reason: "the key or its permissions must be mended; the message is sound"}
	case KindInsufficientCredits, KindQuotaExceeded:
		return Verdict{Action: Hold, Reason: "the account must be topped up or the month must end"}
	case KindNotFound, KindRedirect, KindUnsupported, KindRefused:
		return Verdict{Action: Hold, Reason: "the base URL or the deployment must be looked at"}
	case KindInvalidInput, KindTooLarge:
		return Verdict{Action: DeadLetter, Reason: "the same request can never pass"}
	case KindConflict:
		return Verdict{Action: DeadLetter, Reason: "the identity belongs to another command"}
	case KindRefReused:
		return Verdict{Action: DeadLetter, Reason: "the reference belongs to another text; name the edit with Version"}
	case KindEventFailed:
		if e.Event != nil && !e.Event.FailureClass.canPass() {
			return Verdict{Action: DeadLetter, Reason: "the event failed for a reason another run cannot change"}
		}
		return Verdict{Action: RedriveEvent, Reason: "the event failed; replaying its key would answer FAILED for ever"}
	case KindStillPending:
		return Verdict{Action: RetryAfter, After: e.RetryAfter, Reason: "accepted and not ended yet"}
	}
	return Verdict{Action: RetryAfter, After: e.RetryAfter, Reason: "send the same identity again: " + e.Kind.String()}
}

// decided kinds are the service's own final word, which a context that ended
// at the same moment does not change.
func decided(k Kind) bool {
	switch k {
	case KindUnknown, KindCanceled, KindRateLimited, KindServer, KindUnknownOutcome, KindInProgress, KindStillPending:
		return false
	}
	return true
}
