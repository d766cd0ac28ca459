package protocol

// Workspace owns everything an API key can reach. Ids, cursors, keys,
// references and events are looked up inside one and nowhere else.
type Workspace struct {
	ID string

	// AddsPerMonth bounds MemorySync writes per UTC calendar month; a negative
	// number is no bound. Zero refuses every write.
	AddsPerMonth int64
	// StrictQuota answers 429 when the month is used up; otherwise the write is
	// answered as a success that stored nothing (the live default).
	StrictQuota bool

	// Credits is what the credits account is opened with on its first use; a
	// negative number is no bound. Change it later with a grant.
	Credits int64

	// Extraction says what to do with an extractor's invalid output.
	Extraction ExtractionPolicy
}

// ExtractionPolicy decides whether invalid structured output is tried again:
// asking a model twice may not repair a semantic mismatch, so the zero value
// does not.
type ExtractionPolicy struct {
	// InvalidOutputAttempts is how many attempts may end in invalid output
	// before the task fails; 0 and 1 both fail at the first.
	InvalidOutputAttempts int
}
