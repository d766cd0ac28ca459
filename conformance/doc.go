// Package conformance checks what the protocol of safe memory writes promises
// against a server that is running: the reference server, your own, or a live
// service.
//
//	report, err := conformance.Run(ctx, conformance.Config{
//		MemorySync: conformance.Endpoint{URL: url, Key: msKey},
//		FishMem:    conformance.Endpoint{URL: url, Key: fmKey},
//	})
//
// It speaks HTTP on its own and knows nothing of the server behind the URL. It
// first finds out what the server offers: either wire may be missing; promises
// about crashes, failures and time run where faults can be injected, which is
// the control API of the reference server; isolation runs where keys of a
// second workspace are given. What cannot run is reported with its reason.
//
// [Plan] says beforehand what a run spends. A run makes no write on a service
// that is neither on this machine nor opens its control API, unless
// [Config.AllowWrites] is set.
//
// Every user, key and reference of a run has a random name of its own, faults
// are armed for those names alone, and what was stored is deleted at the end.
// So runs may follow each other and run side by side. What a run cannot take
// back is what no caller can: credits spent and the history of its events.
package conformance
