// Package extract turns what a caller wrote into facts without asking a model:
// the same input gives the same facts, keys and vectors on every machine and in
// every run. It is the default of the reference server, good enough to develop
// and test against and honest about being rules, not understanding.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use.
package extract
