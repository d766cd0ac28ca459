// Package mockserver is the reference server in the process of a test: both
// wires, real tasks with leases and plans, a ledger, and everything that can go
// wrong on command.
//
//	srv := mockserver.Run(t)
//	client := srv.Client(t)
//	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "note-0001"})
//
// The server listens on a free port of this machine, keeps everything in
// memory, and ends with the test. Several run side by side in one process and
// share nothing. With [InProcess] there is no listener, and the client and
// [Server.RoundTripper] call it directly; that is the way inside a
// testing/synctest bubble.
//
// Runners take milliseconds here unless [RealTimes] says otherwise. The clock
// runs, [Server.Advance] moves it and [Server.Freeze] stops it; leases,
// back-off, the 30 days of a turn, quotas and rate windows follow it. Timeouts
// of connections follow the machine's clock.
//
// # Where the live services are unclear
//
// Each point has a default, and an option where both answers make sense:
//
//   - a client_ref is unique within tenant, project and end user, for ever; it
//     stays used after forget, and is freed when the write failed
//   - a turn is recognised for 30 days from its first acceptance; a skipped turn
//     leaves nothing behind
//   - a filler is skipped with reason "low_value", a text without facts with
//     "no_high_value_content", another text under 10 characters is 422
//   - a used-up monthly quota drops writes silently; [Adds] has the strict form
//   - a verbatim write or a delete needs no Idempotency-Key; [StrictKeys] asks
//     for one as the hosted service does
//   - GET /v1/events needs memory:read, as the live code has it;
//     [EventListNeedsOperationsRead] follows the documents instead
//   - Retry-After is sent in seconds, and error.retry_after says the same
//   - forget answers with the count and with the ids
//   - a deletion under a key is an operation in the key space of the writes,
//     and is part of a snapshot
//   - sort_by of a hybrid search orders its hits; a read by id and a hit of a
//     search count as accesses, which this process counts and no snapshot holds
package mockserver
