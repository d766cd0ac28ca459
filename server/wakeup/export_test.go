package wakeup

import "time"

// AskAfter lets a listener that hears nothing ask sooner whether it is still
// connected.
func AskAfter(b Broker, d time.Duration) Broker {
	b.(*notify).alive = d
	return b
}
