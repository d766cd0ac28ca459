// Package alike holds the stores against each other: one random sequence of
// operations on the one in memory, which is the reference, on SQLite and on
// PostgreSQL. Answers and everything that is stored are compared after each
// step. It has tests only.
package alike
