// Package bench measures what the client costs beside net/http and
// encoding/json written by hand, doing the same work. It has no code of its own
// beside its tests:
//
//	go test ./internal/bench -run TestFigures -v -rounds 15
//
// Slices of a few calls of the two are interleaved in rounds, and the best round
// of each counts, so that what else the machine does matters little. Each figure is printed as
// `figure NAME VALUE OP TARGET ok|short`. One that is measured in time never
// fails the test.
package bench
