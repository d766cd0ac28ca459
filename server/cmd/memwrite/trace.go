package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/memwrite/memwrite-go/contrib/otelmemwrite"
	"github.com/memwrite/memwrite-go/internal/protocol"
)

// flushed bounds how long the last spans may take to be sent.
const flushed = 5 * time.Second

// checkTraces refuses an address that cannot be one, before anything is opened.
func checkTraces(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("--otlp-endpoint: want a URL such as http://127.0.0.1:4318/v1/traces")
	}
	return nil
}

// traces sends the steps of writes to a collector as spans of the traces their
// requests belong to. stop sends what is left. Without an endpoint observe is
// nil.
func traces(ctx context.Context, endpoint string, log *slog.Logger) (observe func(protocol.Step), stop func(), err error) {
	if endpoint == "" {
		return nil, func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { log.Warn("spans could not be sent") }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "memwrite"), attribute.String("service.version", version()))))
	runs := otelmemwrite.NewRuns(otelmemwrite.WithTracerProvider(provider))
	observe = func(s protocol.Step) {
		runs.Observe(otelmemwrite.Step{Kind: string(s.Kind), At: s.At, TaskID: s.TaskID, Operation: string(s.Operation),
			Attempt: s.Attempt, Class: string(s.Class), Traceparent: s.Trace})
	}
	stop = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushed)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last spans could not be sent")
		}
	}
	return observe, stop, nil
}
