package model

// Account is one balance.
type Account struct {
	Granted, Available, Reserved, Settled, Released int64
}

func open(n int64) *Account {
	if n < 0 {
		n = 1 << 52
	}
	return &Account{Granted: n, Available: n}
}

// Credits is the account of FishMem writes.
func (m *Model) Credits() *Account {
	if m.credits == nil {
		m.credits = open(m.Limits.Credits)
	}
	return m.credits
}

// Adds is the account of MemorySync writes of this month.
func (m *Model) Adds() *Account {
	month := m.Now.UTC().Format("2006-01")
	if m.adds[month] == nil {
		m.adds[month] = open(m.Limits.Adds)
	}
	return m.adds[month]
}

func (m *Model) short(kind string) string {
	switch {
	case kind == Infer || kind == Verbatim:
		return NoCredits
	case m.Limits.Strict:
		return Refused
	}
	return Dropped
}

func (m *Model) reserve(w *Write) {
	w.account.Available -= w.price
	w.account.Reserved += w.price
}
