// Package metrics counts what a node does, for Prometheus. It holds no text,
// key, reference or person, and no label that grows with the data.
package metrics

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/memwrite/memwrite-go/internal/protocol"
)

// Backlog is what waits in a store.
type Backlog struct {
	Depth  map[protocol.State]int // PENDING, RUNNING and RETRYING
	Oldest time.Time              // when the longest overdue task was due; zero: none is
}

// Config is where the gauges are read from, at each scrape.
type Config struct {
	Now func() time.Time
	// Backlog reads what waits; its error leaves the gauges out of the scrape.
	Backlog func(context.Context) (Backlog, error)
	// Streams is how many live pages are open.
	Streams func() int
}

// Metrics is the counters of one node. It is safe for concurrent use.
type Metrics struct {
	cfg      Config
	registry *prometheus.Registry
	handler  http.Handler

	accepts, replays, conflicts, refusals *prometheus.CounterVec
	claims, reclaims, fenced              prometheus.Counter
	attempts, ended, reservations, hooks  *prometheus.CounterVec
	waited, latency                       prometheus.Histogram

	mu     sync.Mutex
	leases map[string]time.Time // tasks this node holds, and since when
}

// scrape bounds the time a scrape may spend in the store.
const scrape = 2 * time.Second

// New makes the metrics of a node.
func New(c Config) *Metrics {
	m := &Metrics{cfg: c, registry: prometheus.NewRegistry(), leases: map[string]time.Time{}}
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	one := func(name, help string) prometheus.Counter {
		v := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		m.registry.MustRegister(v)
		return v
	}
	seconds := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)})
		m.registry.MustRegister(h)
		return h
	}
	m.accepts = vec("memwrite_accepts_total", "Commands accepted for the first time.", "operation")
	m.replays = vec("memwrite_replays_total", "Commands that came again and changed nothing.", "operation")
	m.conflicts = vec("memwrite_conflicts_total", "Commands refused because their key belongs to another one.", "operation")
	m.refusals = vec("memwrite_refusals_total", "Commands refused for want of credits or quota.", "operation")
	m.claims = one("memwrite_claims_total", "Tasks a runner took up.")
	m.reclaims = one("memwrite_reclaims_total", "Tasks taken up from a runner that was lost.")
	m.fenced = one("memwrite_fenced_writes_total", "Writes of runners refused because the lease was another's.")
	m.attempts = vec("memwrite_attempts_failed_total", "Attempts that failed, by the class of the failure.", "class")
	m.ended = vec("memwrite_tasks_ended_total", "Tasks that came to their end.", "state")
	m.reservations = vec("memwrite_reservations_ended_total", "Reservations that ended, settled or released.", "as")
	m.hooks = vec("memwrite_webhooks_total", "Attempts at a webhook: delivered, failed and due again, or the last one failed.", "outcome")
	for _, outcome := range []string{"delivered", "failed", "given_up"} {
		m.hooks.WithLabelValues(outcome) // there at 0, so that the first failure is a rise
	}
	m.waited = seconds("memwrite_wait_seconds", "From due to claimed.")
	m.latency = seconds("memwrite_latency_seconds", "From accepted to the end.")
	m.registry.MustRegister(gauges{m}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Webhook counts an attempt at a webhook: delivered, failed or given_up.
func (m *Metrics) Webhook(outcome string) { m.hooks.WithLabelValues(outcome).Inc() }

// Observe counts a step of the engine.
func (m *Metrics) Observe(s protocol.Step) {
	op := string(s.Operation)
	switch s.Kind {
	case protocol.StepAccepted:
		m.accepts.WithLabelValues(op).Inc()
	case protocol.StepReplayed:
		m.replays.WithLabelValues(op).Inc()
	case protocol.StepConflict:
		m.conflicts.WithLabelValues(op).Inc()
	case protocol.StepRefused:
		m.refusals.WithLabelValues(op).Inc()
	case protocol.StepClaimed, protocol.StepReclaimed:
		m.claims.Inc()
		if s.Kind == protocol.StepReclaimed {
			m.reclaims.Inc()
			m.attempts.WithLabelValues(string(protocol.Interrupted)).Inc()
		}
		m.waited.Observe(s.Waited.Seconds())
		m.hold(s.TaskID, s.At)
	case protocol.StepFenced, protocol.StepUnfinished:
		if s.Kind == protocol.StepFenced {
			m.fenced.Inc()
		}
		m.release(s.TaskID)
	case protocol.StepRetrying:
		m.attempts.WithLabelValues(string(s.Class)).Inc()
		m.release(s.TaskID)
	case protocol.StepFailed:
		m.attempts.WithLabelValues(string(s.Class)).Inc()
		m.end(s, protocol.Failed, protocol.Release)
	case protocol.StepSucceeded:
		m.end(s, protocol.Succeeded, protocol.Settle)
	}
}

func (m *Metrics) end(s protocol.Step, as protocol.State, e protocol.EntryKind) {
	m.ended.WithLabelValues(string(as)).Inc()
	m.reservations.WithLabelValues(string(e)).Inc()
	m.latency.Observe(s.Age.Seconds())
	m.release(s.TaskID)
}

func (m *Metrics) hold(id string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leases[id] = at
}

func (m *Metrics) release(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, id)
}

// held is how many leases this node holds, and the age of the oldest.
func (m *Metrics) held(now time.Time) (n int, oldest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range m.leases {
		oldest = max(oldest, now.Sub(at))
	}
	return len(m.leases), oldest
}

// gauges are read when they are scraped.
type gauges struct{ m *Metrics }

var (
	depth    = prometheus.NewDesc("memwrite_queue_depth", "Tasks that have not ended, by state.", []string{"state"}, nil)
	queueAge = prometheus.NewDesc("memwrite_queue_age_seconds", "How long the longest overdue task has been due.", nil, nil)
	leases   = prometheus.NewDesc("memwrite_leases", "Leases this node holds.", nil, nil)
	leaseAge = prometheus.NewDesc("memwrite_lease_age_seconds", "Age of the oldest lease this node holds.", nil, nil)
	streams  = prometheus.NewDesc("memwrite_sse_clients", "Live pages that are open.", nil, nil)
)

func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{depth, queueAge, leases, leaseAge, streams} {
		ch <- d
	}
}

func (g gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	now := g.m.cfg.Now()
	n, oldest := g.m.held(now)
	gauge(leases, float64(n))
	gauge(leaseAge, oldest.Seconds())
	gauge(streams, float64(g.m.cfg.Streams()))
	ctx, cancel := context.WithTimeout(context.Background(), scrape)
	defer cancel()
	b, err := g.m.cfg.Backlog(ctx)
	if err != nil {
		return
	}
	for _, s := range []protocol.State{protocol.Pending, protocol.Running, protocol.Retrying} {
		gauge(depth, float64(b.Depth[s]), string(s))
	}
	age := 0.0
	if !b.Oldest.IsZero() {
		age = max(now.Sub(b.Oldest).Seconds(), 0)
	}
	gauge(queueAge, age)
}
