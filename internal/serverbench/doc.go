// Package serverbench measures what a write costs on the reference server:
// beside a bare net/http handler that decodes and answers the same JSON, and
// with many tasks stored beside few. It has no code of its own beside its
// tests:
//
//	go test ./internal/serverbench -run TestFigures -v                  # against 20,000 tasks, for every day
//	go test ./internal/serverbench -run TestFigures -v -full -rounds 5  # against 1,000,000; some gigabytes
//
// Slices of the two are interleaved in rounds, and the best round of each
// counts. Each figure is printed as `figure NAME VALUE OP TARGET ok|short`, with
// how many tasks were stored behind a #. All of them are measured in time, and
// none fails a test.
package serverbench
