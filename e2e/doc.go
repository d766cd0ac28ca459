// Package e2e drives the inspector in a real browser, as a person would.
package e2e
