package service

import (
	"log/slog"
	"net/http"
	"time"
)

// Options settle how the service behaves, above all where the live services
// are unclear or differ from their own documents. The zero value of a field is
// its default.
type Options struct {
	// InlineWait is how long /memory/add waits for its task; 25 s.
	InlineWait time.Duration
	// MaxBody bounds a request body in bytes; 1 MiB. FishMem's own limit of
	// 250,000 bytes for a command is checked beside it.
	MaxBody int64
	// MinText is the length /memory/add asks of a text that is no filler, in
	// characters after trimming; 10, as documented. Below 0: none.
	MinText int
	// MaxMetadata bounds metadata on MemorySync in bytes, 413 above; 64,000.
	MaxMetadata int
	// TurnStatus is the HTTP status of an accepted turn; 201. Older
	// deployments say 200.
	TurnStatus int
	// StrictKeys asks for an Idempotency-Key on verbatim writes and deletes
	// too, as the hosted FishMem does; default: only inferred writes need it.
	StrictKeys bool
	// EventListScope is the permission GET /v1/events needs; memory:read,
	// which is what the live code asks although its documents say
	// operations:read.
	EventListScope string
	// DefaultTenant is the tenant_id every key may use beside its own
	// workspace; "default".
	DefaultTenant string
	// MemorySyncRates and FishMemRates limit each key; none by default.
	MemorySyncRates []Window
	FishMemRates    []Window
	// LowValueReason is the reason of a skipped filler; "low_value". The live
	// string is not known.
	LowValueReason string
	// NothingReason is the reason when extraction found nothing;
	// "no_high_value_content".
	NothingReason string
	// Log gets one line a request that ended in a 500: never text or keys.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.InlineWait, 25*time.Second)
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.MinText == 0 {
		o.MinText = 10
	}
	if o.MaxMetadata == 0 {
		o.MaxMetadata = 64_000
	}
	if o.TurnStatus == 0 {
		o.TurnStatus = http.StatusCreated
	}
	for p, v := range map[*string]string{
		&o.EventListScope: ScopeMemoryRead, &o.DefaultTenant: "default",
		&o.LowValueReason: "low_value", &o.NothingReason: "no_high_value_content",
	} {
		if *p == "" {
			*p = v
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
