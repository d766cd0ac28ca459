// Package crash kills servers while clients write to them, and reads from the
// store what became of each write that a client was told is accepted.
//
// A server is a child process: the test binary itself, started again. The
// parent holds the listener, so that a server that is started anew is found
// where the last one was. It kills by SIGKILL, at a random time or, from inside
// the child, at a named point of the protocol.
package crash
