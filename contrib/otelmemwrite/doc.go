// Package otelmemwrite gives OpenTelemetry what a memwrite client does: a span
// a call, with an event for each try and retry, and metrics. The trace goes to
// the server in a traceparent header, and [Runs] continues it there into the
// run of the same write.
//
//	client, err := memwrite.New(
//		memwrite.FromEnvironment(),
//		memwrite.WithObserver(otelmemwrite.NewObserver()),
//	)
//
// No span, event or metric holds a key, an address, a person or memory text.
package otelmemwrite
