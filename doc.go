// Package memwrite writes memories to two services, MemorySync and FishMem, in
// a way that is safe to repeat.
//
// Every write carries an identity made from the caller's own record ([Ref]):
// a client_ref on POST /memory/add, an Idempotency-Key on POST /v1/memories,
// and speaker, occurred_at and text on a conversation turn. The client sends
// the same identity on every try of one call, and a queue worker that calls
// again after a crash sends it once more. The service then answers for the
// first write in place of making a second.
//
// A nil error means the service gave a definite answer, which is one of the
// typed outcomes: stored, already ingested, skipped, accepted, no memory. Every
// other end is an [*Error], and [VerdictOf] says what a worker should do with
// its message.
package memwrite
