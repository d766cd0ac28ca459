// Package ingest writes a file of records, JSONL or CSV, through a queue
// worker's core: every record once, however often it is started again.
//
// What it knows of a file lies in a small SQLite file beside it: for each record
// its identity, a hash of its text, its line and how it ended. So a run that was
// killed goes on where it was, and an id that comes twice with other text is
// found without keeping the file in memory. Without that file the identities
// alone keep every record single.
package ingest
