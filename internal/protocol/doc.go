// Package protocol is durable asynchronous writing as pure decisions: from what
// is known and the time, to the writes to make and the answer to give. It has
// no HTTP, SQL, goroutine or clock of its own.
//
// A task's whole life, with the function that decides each step:
//
//	Accept    identity + task + reservation + first transition      PENDING
//	Claim     compare-and-swap, new lease, attempt+1                 RUNNING
//	Freeze    record ids and facts, once; no inference after it
//	Commit    records and the plan's outcome, once
//	Project   search rows for records that exist already
//	Finish    terminal state, settlement, redaction                  SUCCEEDED
//	Fail      back-off, or terminal state and release                RETRYING, FAILED
//	Redrive   a new run of a FAILED task with a new reservation      PENDING
//
// Each returns a WriteSet, which a Store applies as a whole or not at all.
package protocol
