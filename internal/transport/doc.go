// Package transport is the one try loop of the client. It knows HTTP and time
// and nothing about memories: what an answer means is decided by the Classify
// function it is given.
//
// A call is what the caller asked for; a try is one HTTP exchange made for it.
// Every try of a call carries the same bytes and the same headers, apart from
// Memwrite-Try, which numbers them from 1. (net/http itself may replay a
// request on a fresh connection when a kept-alive one turns out to be dead and
// the request carries an Idempotency-Key; such a replay repeats the number.)
//
// The loop is go-retryablehttp with every default replaced: which answers are
// tried again, how long is waited and on which clock, what becomes of the last
// answer, and how bodies are read and connections kept. Each rule is a file:
// answer.go reads a body, retryafter.go a server's wait, backoff.go draws the
// client's own; budget.go, gate.go and pause.go keep many calls of one client
// from hammering a server that has trouble.
package transport
