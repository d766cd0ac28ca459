// Package linear holds the tests that record histories against servers over
// HTTP, under load, kill and restart, and check that each is linearizable: that
// all answers can be put in one order, within the times of their calls, in which
// a single server that does one thing after another would have given them. A
// call whose answer never came may have happened, or not, at any time after it.
//
// Three models: an idempotent accept and the event it names; the lease of a task
// under claim, heartbeat, finish and failure; the credits of a workspace.
package linear
