package mockserver

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"log"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/internal/service"
	"github.com/memwrite/memwrite-go/internal/store/memory"
	"github.com/memwrite/memwrite-go/internal/webhook"
)

// Option settles how a server starts.
type Option func(*config)

type config struct {
	inProcess   bool
	address     string
	workspace   string
	readTimeout time.Duration
	credits     int64 // below 0: no limit
	adds        int64
	strictQuota bool
	realTimes   bool
	attempts    int
	invalid     int
	service     service.Options
	hook        webhook.Target
	open        func(firstNumber int64) (protocol.Store, error)
	onStep      func(Step)
}

func defaults() config {
	return config{address: "127.0.0.1:0", workspace: "default", readTimeout: 10 * time.Second, credits: -1, adds: -1, attempts: 5, open: inMemory}
}

func inMemory(firstNumber int64) (protocol.Store, error) { return memory.New(firstNumber), nil }

// OnStore keeps everything in what open gives, an empty store, in place of
// memory; Reset and Restore open another. It is for this module's own tests of
// durable stores: the type is internal, so only they can call it.
func OnStore(open func(firstNumber int64) (protocol.Store, error)) Option {
	return func(c *config) { c.open = open }
}

// InProcess starts no listener: the server is reached by its RoundTripper and
// by its Client. In a testing/synctest bubble this is the way, since a real
// connection would stop the bubble's clock.
func InProcess() Option { return func(c *config) { c.inProcess = true } }

// Address listens there rather than on a free port of the loopback.
func Address(addr string) Option { return func(c *config) { c.address = addr } }

// Credits grants the workspace so many FishMem credits: 2 for an inferred
// write, 1 for a verbatim one. Without it there is no limit.
func Credits(n int64) Option { return func(c *config) { c.credits = n } }

// Adds grants the workspace so many MemorySync adds a month. A write over it is
// dropped without a word, as the live service does by default, or refused with
// 429 limit_exceeded when strict is true. Without it there is no limit.
func Adds(n int64, strict bool) Option {
	return func(c *config) { c.adds, c.strictQuota = n, strict }
}

// RealTimes gives runners the durations of a server in production (lease 30 s,
// heartbeat 10 s, back-off 1 s to 1 min, repair every 5 s) instead of
// milliseconds. With Advance, a test can still make them pass at once.
func RealTimes() Option { return func(c *config) { c.realTimes = true } }

// Attempts is how often a task is tried before it is FAILED; 5.
func Attempts(n int) Option { return func(c *config) { c.attempts = n } }

// InvalidOutputAttempts is the workspace's extraction policy: how many attempts
// of a task may end in invalid output before it is FAILED. 0, the default, and
// 1 both fail it at the first, since asking again may not repair it.
func InvalidOutputAttempts(n int) Option { return func(c *config) { c.invalid = n } }

// InlineWait is how long /memory/add waits for its task before it answers 503
// with Retry-After: 1; 25 s.
func InlineWait(d time.Duration) Option { return func(c *config) { c.service.InlineWait = d } }

// StrictKeys asks for an Idempotency-Key on verbatim writes and deletes too, as
// the hosted FishMem does.
func StrictKeys() Option { return func(c *config) { c.service.StrictKeys = true } }

// EventListNeedsOperationsRead makes GET /v1/events ask for operations:read, as
// the service's documents say; its code asks for memory:read, the default here.
func EventListNeedsOperationsRead() Option {
	return func(c *config) { c.service.EventListScope = service.ScopeOperationsRead }
}

// RateLimits limits each key as the live services do: MemorySync's free tier
// and FishMem's 600 a minute.
func RateLimits() Option {
	return func(c *config) {
		c.service.MemorySyncRates, c.service.FishMemRates = service.FreeTier(), service.FishMemRate()
	}
}

// ReadTimeout is how long a caller may take to send its headers or its whole
// request; 10 s.
func ReadTimeout(d time.Duration) Option { return func(c *config) { c.readTimeout = d } }

func token() string {
	var b [16]byte
	_, _ = io.ReadFull(rand.Reader, b[:])
	return hex.EncodeToString(b[:])
}

func silent() *log.Logger { return log.New(io.Discard, "", 0) }
