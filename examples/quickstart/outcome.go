package main

// What can become of a note. Each note ends in exactly one.
const (
	outcomeStored   = "stored"    // its own task made a record
	outcomeAlready  = "already"   // its reference belongs to another line's text
	outcomeSkipped  = "skipped"   // the server says it is not worth storing
	outcomeNoMemory = "no_memory" // inference ended well and found nothing
	outcomeFailed   = "failed"    // its task ended FAILED; nothing was committed
	outcomeLost     = "lost"      // nothing is known of it: this must not happen
)
