// Package outage measures, in virtual time, what the client's default policy
// does to a server in trouble and to the calls made meanwhile. It has no code
// of its own beside its tests:
//
//	go test ./internal/outage -run TestFigures -v            # a twentieth of the callers, for every day
//	go test ./internal/outage -run TestFigures -v -callers 1000
//
// Each figure is printed as `figure NAME VALUE OP TARGET ok|short`.
package outage
