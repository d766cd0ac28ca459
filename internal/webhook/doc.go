// Package webhook tells a subscriber over HTTP what became of inferred writes:
// signed, in any order, at least once, under ids that stay the same however
// often something is told.
//
// What is to be told is read from the store's transitions, so that nothing a
// runner has to do depends on a subscriber, and a lost process loses none: what
// ended in the ten minutes before a start is told again.
package webhook
