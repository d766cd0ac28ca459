package protocol

import "time"

// Class is the kind of a failure; it decides whether to try again.
type Class string

const (
	ProviderTimeout Class = "provider_timeout" // bounded retry
	Infrastructure  Class = "infrastructure"   // bounded retry
	InvalidOutput   Class = "invalid_output"   // only under the workspace's extraction policy
	ProjectionError Class = "projection"       // retry the projection, never the records
	CreditsError    Class = "credits"          // stop
	Authorization   Class = "authorization"    // stop
	Rejected        Class = "rejected"         // stop: the extractor refused the input for good
	Interrupted     Class = "interrupted"      // a runner died or lost its lease; bounded retry
)

// Failure is why an attempt failed. Message never holds memory text.
type Failure struct {
	Class   Class
	Code    string // stable, upper case
	Message string
}

// Error makes a Failure what an Extractor or Projector returns.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Fail makes a failure with the stable code of its class.
func Fail(c Class, message string) *Failure {
	codes := map[Class]string{ProviderTimeout: "PROVIDER_TIMEOUT", Infrastructure: "PROVIDER_UNAVAILABLE", InvalidOutput: "INVALID_EXTRACTION",
		ProjectionError: "PROJECTION_FAILED", CreditsError: "INSUFFICIENT_CREDITS", Authorization: "UNAUTHORIZED",
		Rejected: "EXTRACTION_REJECTED", Interrupted: "RUNNER_LOST"}
	return &Failure{Class: c, Code: codes[c], Message: message}
}

// again says whether a task may have another attempt after f.
func again(t *Task, f *Failure, p ExtractionPolicy) bool {
	if t.Attempts >= t.MaxAttempts {
		return false
	}
	switch f.Class {
	case InvalidOutput:
		return t.Invalid < p.InvalidOutputAttempts
	case CreditsError, Authorization, Rejected:
		return false
	}
	return true
}

// BackOff says how long to wait between attempts.
type BackOff struct {
	Base time.Duration // after the first attempt
	Cap  time.Duration
}

// After is the wait after attempt n (1, 2, …): base doubling to the cap, of
// which draw, in [0, 1), takes up to a half away, so that tasks that failed
// together do not come back together. It is never zero.
func (b BackOff) After(n int, draw float64) time.Duration {
	d := b.Base
	for i := 1; i < n && d < b.Cap; i++ {
		d *= 2
	}
	d = min(d, b.Cap)
	d -= time.Duration(draw * float64(d) / 2)
	return max(d, time.Millisecond)
}
