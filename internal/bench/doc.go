// Package bench measures what the client costs beside net/http and
// encoding/json written by hand, doing the same work. It has no code of its own
// beside its tests:
//
//	go test ./internal/bench -run TestFigures -v -rounds 7
//
// Rounds of the two are interleaved and the best of each counts, so that what
// else the machine does matters little. Each figure is printed as
// `figure NAME VALUE OP TARGET ok|short`. One that is measured in time never
// fails the test.
package bench
