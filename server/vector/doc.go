// Package vector is the index that finds records by nearness: vectors of what
// they say, in memory and in a folder beside the store, or in memory alone where
// other processes write the records too. It is derived from the records and
// decides nothing: a search reads what it finds from the store, and the folder
// may be thrown away at any time.
package vector
