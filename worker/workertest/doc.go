// Package workertest puts a broker and the adapter in front of it through a
// drill: records delivered several times and in any order, worker processes
// killed in the middle, and a service in trouble.
//
//	func TestDrill(t *testing.T) {
//		workertest.Drill(t, workertest.Broker{Name: "nats", Worker: work, …})
//	}
//
// Drill starts the test's own binary again as the worker process. It fails the
// test, and prints a line that says so, when a record is stored twice or not at
// all, when a dead letter is missing or one too many, and when a message is
// left in flight.
package workertest
