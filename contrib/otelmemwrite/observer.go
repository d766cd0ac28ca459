package otelmemwrite

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	memwrite "github.com/memwrite/memwrite-go"
)

const scope = "github.com/memwrite/memwrite-go/contrib/otelmemwrite"

// Option settles where spans and metrics go.
type Option func(*config)

type config struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator propagation.TextMapPropagator
}

// WithTracerProvider takes the place of the global one.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider takes the place of the global one.
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithPropagator takes the place of W3C Trace Context. Baggage is not sent by
// default: it may hold what no memory service should see.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(c *config) { c.propagator = p }
}

func configured(opts []Option) config {
	c := config{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider(), propagator: propagation.TraceContext{}}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// Observer is a memwrite.CallObserver. It is safe for concurrent use and for
// several clients.
type Observer struct {
	config
	tracer   trace.Tracer
	duration metric.Float64Histogram
	tries    metric.Int64Counter
	waited   metric.Float64Histogram
	events   metric.Int64Counter
}

var _ memwrite.CallObserver = (*Observer)(nil)

// NewObserver makes an observer for memwrite.WithObserver. An instrument the
// provider cannot make is left out, and the provider's error handler told.
func NewObserver(opts ...Option) *Observer {
	c := configured(opts)
	meter := c.meters.Meter(scope)
	o := &Observer{config: c, tracer: c.tracers.Tracer(scope)}
	var errs [4]error
	o.duration, errs[0] = meter.Float64Histogram("memwrite.client.call.duration", metric.WithUnit("s"), metric.WithDescription("Duration of a call, its retries and waits included."))
	o.tries, errs[1] = meter.Int64Counter("memwrite.client.tries", metric.WithUnit("{try}"), metric.WithDescription("Requests sent, by what they proved."))
	o.waited, errs[2] = meter.Float64Histogram("memwrite.client.retry.wait", metric.WithUnit("s"), metric.WithDescription("Wait before another try."))
	o.events, errs[3] = meter.Int64Counter("memwrite.client.flow", metric.WithUnit("{event}"), metric.WithDescription("Gate and pause of a client: shut, opened, paused, resumed, drained."))
	if err := errors.Join(errs[:]...); err != nil {
		otel.Handle(err)
	}
	return o
}

// call is what is known of a call while it goes on.
type call struct {
	mu     sync.Mutex
	began  time.Time
	tries  int
	status int
}

type callKey struct{}

// ObserveCall begins a span and sends its trace along.
func (o *Observer) ObserveCall(ctx context.Context, c memwrite.Call, header http.Header) (context.Context, func(error)) {
	attrs := []attribute.KeyValue{
		attribute.String("http.request.method", c.Method),
		attribute.String("memwrite.service", c.Service),
		attribute.String("memwrite.operation", c.Op),
	}
	ctx, span := o.tracer.Start(ctx, "memwrite "+c.Op, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	o.propagator.Inject(ctx, propagation.HeaderCarrier(header))
	state := &call{began: time.Now()}
	return context.WithValue(ctx, callKey{}, state), func(err error) {
		state.mu.Lock()
		defer state.mu.Unlock()
		if state.status > 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", state.status))
		}
		if state.tries > 1 {
			span.SetAttributes(attribute.Int("http.request.resend_count", state.tries-1))
		}
		kind := ""
		if err != nil {
			kind = kindOf(err)
			span.SetAttributes(attribute.String("error.type", kind))
			// The error's own words may quote the service's, so only its kind.
			span.SetStatus(codes.Error, kind)
		}
		span.End()
		set := []attribute.KeyValue{attribute.String("memwrite.service", c.Service), attribute.String("memwrite.operation", c.Op)}
		if kind != "" {
			set = append(set, attribute.String("error.type", kind))
		}
		o.duration.Record(ctx, time.Since(state.began).Seconds(), metric.WithAttributes(set...))
	}
}

func kindOf(err error) string {
	var e *memwrite.Error
	if errors.As(err, &e) {
		return e.Kind.String()
	}
	return "other"
}

// Observe adds tries and retries to the call's span, and counts.
func (o *Observer) Observe(ob memwrite.Observation) {
	ctx := ob.Context
	if ctx == nil {
		ctx = context.Background()
	}
	service := attribute.String("memwrite.service", ob.Service)
	span := trace.SpanFromContext(ctx)
	state, _ := ctx.Value(callKey{}).(*call)
	switch ob.Kind {
	case memwrite.ObserveTryStarted:
		if state != nil {
			state.mu.Lock()
			state.tries++
			state.mu.Unlock()
		}
	case memwrite.ObserveTryDone:
		attrs := []attribute.KeyValue{attribute.Int("memwrite.try", ob.Try), attribute.String("memwrite.class", ob.Class)}
		if ob.Status > 0 {
			attrs = append(attrs, attribute.Int("http.response.status_code", ob.Status))
		}
		if ob.Reason != "" {
			attrs = append(attrs, attribute.String("memwrite.reason", ob.Reason))
		}
		span.AddEvent("memwrite.try", trace.WithTimestamp(ob.Time), trace.WithAttributes(attrs...))
		if state != nil {
			state.mu.Lock()
			state.status = ob.Status
			state.mu.Unlock()
		}
		o.tries.Add(ctx, 1, metric.WithAttributes(service, attribute.String("memwrite.class", ob.Class)))
	case memwrite.ObserveRetry:
		span.AddEvent("memwrite.retry", trace.WithTimestamp(ob.Time), trace.WithAttributes(attribute.Int("memwrite.try", ob.Try),
			attribute.String("memwrite.reason", ob.Reason), attribute.Float64("memwrite.wait", ob.Wait.Seconds())))
		o.waited.Record(ctx, ob.Wait.Seconds(), metric.WithAttributes(service, attribute.String("memwrite.reason", ob.Reason)))
	case memwrite.ObserveGateShut, memwrite.ObserveGateOpened, memwrite.ObservePaused, memwrite.ObserveResumed, memwrite.ObserveDrained:
		o.events.Add(ctx, 1, metric.WithAttributes(service, attribute.String("memwrite.event", string(ob.Kind))))
	}
}
