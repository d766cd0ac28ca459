package otelmemwrite

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Step is one thing a server says happened to a write.
type Step struct {
	Kind        string // accepted, replayed, claimed, …, succeeded, failed
	At          time.Time
	TaskID      string
	Operation   string
	Attempt     int
	Class       string // of the failure of retrying, failed and reclaimed
	Traceparent string // of the request that brought the write
}

// Runs continues the traces of requests into the runs of their writes: a span
// for the acceptance and one an attempt, with an event for each thing it
// reached. It is safe for concurrent use.
type Runs struct {
	tracer trace.Tracer
	mu     sync.Mutex
	open   map[string]trace.Span // by task
}

// maxOpen bounds the attempts whose spans are open. One more is not traced.
const maxOpen = 10_000

// NewRuns makes one. Only WithTracerProvider has a say.
func NewRuns(opts ...Option) *Runs {
	return &Runs{tracer: configured(opts).tracers.Tracer(scope), open: map[string]trace.Span{}}
}

// Observe takes a step in. Steps of one attempt come in order.
func (r *Runs) Observe(s Step) {
	parent := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s.Traceparent})
	switch s.Kind {
	case "accepted", "replayed", "conflict", "refused", "redriven":
		_, span := r.tracer.Start(parent, "memwrite "+s.Kind, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.At), trace.WithAttributes(about(s)...))
		if s.Kind == "conflict" || s.Kind == "refused" {
			span.SetStatus(codes.Error, s.Kind)
		}
		span.End(trace.WithTimestamp(s.At))
	case "claimed", "reclaimed":
		r.end(s, "lost")
		r.begin(parent, s)
	case "planned", "committed", "projected":
		r.with(s.TaskID, func(span trace.Span) { span.AddEvent("memwrite."+s.Kind, trace.WithTimestamp(s.At)) })
	case "succeeded":
		r.with(s.TaskID, func(span trace.Span) { span.AddEvent("memwrite.settled", trace.WithTimestamp(s.At)) })
		r.end(s, "")
	case "failed":
		r.with(s.TaskID, func(span trace.Span) { span.AddEvent("memwrite.released", trace.WithTimestamp(s.At)) })
		r.end(s, s.Class)
	case "retrying":
		r.end(s, s.Class)
	case "unfinished":
		r.end(s, "lost")
	}
}

func about(s Step) []attribute.KeyValue {
	out := []attribute.KeyValue{attribute.String("memwrite.task", s.TaskID), attribute.String("memwrite.operation", s.Operation)}
	if s.Attempt > 0 {
		out = append(out, attribute.Int("memwrite.attempt", s.Attempt))
	}
	return out
}

func (r *Runs) begin(parent context.Context, s Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) >= maxOpen {
		return
	}
	_, r.open[s.TaskID] = r.tracer.Start(parent, "memwrite run", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(s.At), trace.WithAttributes(about(s)...))
}

func (r *Runs) with(task string, f func(trace.Span)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if span := r.open[task]; span != nil {
		f(span)
	}
}

// end closes the attempt that is open, failed when a failure is named.
func (r *Runs) end(s Step, failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	span := r.open[s.TaskID]
	if span == nil {
		return
	}
	delete(r.open, s.TaskID)
	if failure != "" {
		span.SetAttributes(attribute.String("error.type", failure))
		span.SetStatus(codes.Error, failure)
	}
	span.End(trace.WithTimestamp(s.At))
}
