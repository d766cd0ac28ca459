// Package inspector is the web page of the reference server: what each write
// went through, what was stored and charged, which requests came, and, where
// the server allows it, faults to arm and a clock to move.
//
// Everything is rendered on the server and embedded in the program; a little
// script keeps the page live. Nothing is shown that the event of a write would
// hide: no input, no keys, no bodies, no query strings. The texts of live
// records are shown where records are listed, as the wire lists them.
package inspector
