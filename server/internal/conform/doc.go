// Package conform holds the tests that run the whole conformance suite, faults
// included, against the durable stores.
package conform
