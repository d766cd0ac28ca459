// Package waiting measures, in virtual time, what it costs to wait for an event
// until it ends: how long after the end the caller knows, and how many requests
// that took. It has no code of its own beside its tests:
//
//	go test ./internal/waiting -run TestFigures -v               # a fifth of the events, for every day
//	go test ./internal/waiting -run TestFigures -v -events 20000
//
// Each figure is printed as `figure NAME VALUE OP TARGET ok|short`. The network
// takes no time here, so that the figures are the schedule's alone.
package waiting
