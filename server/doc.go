// Package server assembles a durable memwrite server: a store, the engine that
// carries tasks to their end, and HTTP in front. It decides nothing itself.
package server
