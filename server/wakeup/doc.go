// Package wakeup carries wake-ups between nodes: that there is a task to run,
// and that one has moved.
//
// A wake-up carries no truth. One that is lost costs the time until somebody
// looks by himself (engine.Limits.RepairEvery), one that comes twice costs a
// look. So nothing here is stored, confirmed or sent again; what a broker could
// do beyond that (a stream on disk, a consumer a node) would be paid for and
// protect nothing.
package wakeup
