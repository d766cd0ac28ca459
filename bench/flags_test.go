package bench

import "flag"

var (
	rounds = flag.Int("rounds", 1, "interleaved rounds; the figures are stated for the best of 5 or more")
	full   = flag.Bool("full", false, "let -stored tasks wait rather than 20,000 for the claims")
	stored = flag.Int("stored", 1_000_000, "tasks that wait in the larger store of a -full run")
)
