// Package sim lets the real client, service, engine, protocol and memory store
// run under one seed, one runnable at a time, while everything goes wrong, and
// holds the invariants after every step.
//
// A schedule is one short life of a small world: a few clients, one or two
// nodes and their store. The seed gives a [Script], which says what the
// clients want and which faults strike where, and the order in which runnables
// go on. The same seed gives the same steps, so a failure is its seed.
package sim
