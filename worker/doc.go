// Package worker is what stands between a message broker and the client: one
// delivery in, one outcome out. It knows no broker.
//
//	w, err := worker.New(client, worker.Config{})
//	outcome := w.Handle(ctx, worker.Delivery{Data: message.Body})
//	switch outcome.Action {
//	case memwrite.Ack:        // take it off the queue
//	case memwrite.RetryAfter: // deliver it again, no sooner than outcome.After
//	case memwrite.DeadLetter: // keep outcome.Dead, then take it off the queue
//	default:                  // Hold and GiveBack: return it uncounted after outcome.After
//	}
//
// Every write has the identity of its record, so a message that is delivered
// twice, or handled by a process that is killed, ends in one memory.
//
// # What the worker does by itself
//
//   - It reads an already ingested memory back, so that another text under a
//     known reference is a dead letter and not swallowed without a word.
//   - It writes at most Config.Concurrency records at a time, and the records
//     of one end user one after the other, in the order they were delivered.
//   - It runs a FAILED event again, at most [memwrite.MaxRedrives] times.
//   - When the answer says that a person or the calendar must act (a quota, a
//     key, a wrong URL), it holds: nothing is sent but one probe, after 5
//     minutes at first and an hour at most, and it goes on by itself when a
//     probe passes. A source should not be pulled from meanwhile: see
//     [Worker.Demand].
//   - It tells the broker that a delivery is still in work.
//   - Close gives back what is not finished.
//
// # Order
//
// The order of a key holds among the deliveries a worker has in hand. A record
// that has to be delivered again later is overtaken by those behind it: waiting
// for it would let one bad record block its whole key.
package worker
