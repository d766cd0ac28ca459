package protocol

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: nothing of that name exists in this workspace. What exists
	// in another one is answered the same way.
	ErrNotFound = errors.New("protocol: not found")

	// ErrConflict: the key was used for another command. It had no effect.
	ErrConflict = errors.New("protocol: the key belongs to another command")

	// ErrStale: the task is no longer as the write set expects it, so nothing
	// was written. A runner that reads this has lost its lease and stops.
	ErrStale = errors.New("protocol: the task has moved on")

	// ErrInsufficient: the account does not cover the reservation; nothing was
	// kept and the key is free. Errors of a Store or Engine wrap it in an
	// *InsufficientError.
	ErrInsufficient = errors.New("protocol: the account does not cover it")

	// ErrNotRetryable: a redrive of a task that is not there, succeeded, FAILED
	// longer ago than its command is kept, or belongs to an operation whose
	// caller sends it again instead.
	ErrNotRetryable = errors.New("protocol: the task cannot be redriven")

	// ErrUnavailable: the store cannot work now: its disk is full or its server
	// is away. Whether the write under way was kept is not known; the same call
	// finds out later. Errors of a Store wrap it.
	ErrUnavailable = errors.New("protocol: the store is not available")

	// ErrInvariant: a write was stopped because it would break the protocol.
	// It is a fault of the server, never of a caller.
	ErrInvariant = errors.New("protocol: invariant broken")
)

// InsufficientError says which account was short.
type InsufficientError struct {
	Account Account
	Needed  int64
	// Strict is the workspace's form of a monthly quota: true refuses loudly,
	// false answers success and stores nothing, as the live service does.
	Strict bool
}

func (e *InsufficientError) Error() string {
	return fmt.Sprintf("protocol: %d %s needed, and the account has less", e.Needed, e.Account.Unit)
}

// Unwrap makes errors.Is(err, ErrInsufficient) true.
func (e *InsufficientError) Unwrap() error { return ErrInsufficient }

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvariant, fmt.Sprintf(format, args...))
}
