// Package postgres keeps everything in one PostgreSQL database that any number
// of nodes share.
//
// A write is one transaction of two pipelined rounds: the first locks and
// reads, what package protocol decides from that is written by the second. The
// accepts, and the steps of runners, that come at the same moment share a
// transaction, and each is judged for itself. No prepared statement, session
// setting or session lock outlives a transaction, so a pooler in transaction
// mode may stand between.
//
// Time is the database's: see Clock.
package postgres
