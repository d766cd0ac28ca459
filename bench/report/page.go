package main

import (
	"bytes"
	"fmt"
	"strconv"
)

// about says what a group measures and against what; a group without a line
// here is shown without one.
var about = map[string]string{
	"sdk":        "An `Add` through the client beside net/http and encoding/json written by hand, best of interleaved rounds.",
	"outage":     "1,000 callers, one call a second each, through 60 s of an outage, in virtual time with the default policy.",
	"blip2s":     "The same through an outage of two seconds.",
	"blip5s":     "The same through an outage of five seconds.",
	"blip10s":    "The same through an outage of ten seconds.",
	"wait":       "20,000 waits for an event, in virtual time.",
	"server":     "The reference server in memory beside a bare net/http handler, 16 connections.",
	"sqlite":     "The SQLite store. Always whole transactions, on the disk before they are answered.",
	"postgres":   "The PostgreSQL store. Always whole transactions, committed before they are answered.",
	"inspector":  "The inspector with 100,000 writes in the store, beside a plain page of the same table.",
	"mockserver": "The reference server of tests.",
}

func page(run Run, pictures []Picture) []byte {
	var b bytes.Buffer
	b.WriteString("# Benchmarks\n\n")
	b.WriteString("Made by `make bench-report` from [figures.json](benchmarks/figures.json); do not edit. The figures of one machine, each of one run: a ratio says more than a time, and neither is a promise.\n\n")
	fmt.Fprintf(&b, "Taken %s on %s, %d cores, %s, %s.\n", run.Taken, run.Machine.CPU, run.Machine.Cores, run.Machine.OS, run.Machine.Go)
	for _, p := range pictures {
		fmt.Fprintf(&b, "\n## %s\n", p.Group.Name)
		if text := about[p.Group.Name]; text != "" {
			fmt.Fprintf(&b, "\n%s\n", text)
		}
		if p.File != "" {
			fmt.Fprintf(&b, "\n![%s](benchmarks/%s)\n", p.Alt, p.File)
		}
		b.WriteString("\n| figure | value | target | |\n|---|---|---|---|\n")
		for _, f := range p.Group.Figures {
			target, verdict := "none", ""
			if f.Op != "" {
				target, verdict = f.Op+" "+format(f.Target), "ok"
				if !f.OK {
					verdict = "**short**"
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, format(f.Value), target, verdict)
		}
	}
	return b.Bytes()
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
