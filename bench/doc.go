// Package bench sets the durable stores beside peers that do the same kind of
// work. It is a module outside the workspace, so that nobody inherits a peer.
package bench
