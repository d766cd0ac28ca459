package otelmemwrite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/contrib/otelmemwrite"
	"github.com/memwrite/memwrite-go/mockserver"
)

const text = "My team ships releases every Thursday."

func request(key, content string) memwrite.InferRequest {
	return memwrite.InferRequest{Key: memwrite.NewRef("note", key), Scope: memwrite.Scope{UserID: "sam"}, Content: content}
}

// settled waits until so many spans are there: a step is told after it was
// written, so the last one may come after the client's answer.
func settled(t *testing.T, r *tracetest.SpanRecorder, n int) []sdktrace.ReadOnlySpan {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if spans := r.Ended(); len(spans) >= n {
			return spans
		}
	}
	t.Fatalf("%d spans, want %d", len(r.Ended()), n)
	return nil
}

func events(s sdktrace.ReadOnlySpan) string {
	var out []string
	for _, e := range s.Events() {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func value(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// One inferred write: the caller's span, two tries since the first answer was
// lost, an attempt whose runner died after the commit, and the attempt that
// settled it. All of it is one trace.
func TestOneTraceFromTheCallerToTheSettlement(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	runs := otelmemwrite.NewRuns(otelmemwrite.WithTracerProvider(provider))
	s := mockserver.Run(t, mockserver.OnStep(func(st mockserver.Step) {
		runs.Observe(otelmemwrite.Step{Kind: st.Kind, At: st.At, TaskID: st.TaskID, Operation: st.Operation, Attempt: st.Attempt, Class: st.Class, Traceparent: st.Traceparent})
	}))
	c := s.Client(t, memwrite.WithObserver(otelmemwrite.NewObserver(otelmemwrite.WithTracerProvider(provider))))
	s.Arm(mockserver.Fault{Kind: mockserver.DropResponse})
	s.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit})

	ctx, caller := provider.Tracer("test").Start(t.Context(), "the caller's job")
	receipt, err := c.AddAsync(ctx, request("1", text))
	if err != nil {
		t.Fatal(err)
	}
	caller.End()
	if _, err := c.WaitForEvent(t.Context(), receipt.EventID); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, sp := range settled(t, recorder, 7) {
		if sp.SpanContext().TraceID() != caller.SpanContext().TraceID() {
			continue // the wait's own calls
		}
		lines = append(lines, fmt.Sprintf("%s %s [%s] attempt=%s error=%s", sp.SpanKind(), sp.Name(), events(sp), value(sp, "memwrite.attempt"), value(sp, "error.type")))
		if sp.Name() == "memwrite AddAsync" {
			if sp.Parent().SpanID() != caller.SpanContext().SpanID() {
				t.Error("the call's span is not the caller's child")
			}
			if value(sp, "http.response.status_code") != "202" || value(sp, "http.request.resend_count") != "1" || value(sp, "http.request.method") != "POST" {
				t.Errorf("the call's attributes: %v", sp.Attributes())
			}
		}
	}
	want := []string{
		"client memwrite AddAsync [memwrite.try memwrite.retry memwrite.try] attempt= error=",
		"consumer memwrite run [memwrite.planned memwrite.committed] attempt=1 error=lost",
		"consumer memwrite run [memwrite.projected memwrite.settled] attempt=2 error=",
		"internal the caller's job [] attempt= error=",
		"server memwrite accepted [] attempt= error=",
		"server memwrite replayed [] attempt= error=",
	}
	for n := range lines { // a runner may have begun before the replay came
		lines[n] = strings.Replace(lines[n], "memwrite replayed [] attempt=1", "memwrite replayed [] attempt=", 1)
		lines[n] = strings.Replace(lines[n], "memwrite replayed [] attempt=2", "memwrite replayed [] attempt=", 1)
	}
	slices.Sort(lines)
	if !slices.Equal(lines, want) {
		t.Errorf("the trace is\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestNothingPrivateIsInASpan(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	s := mockserver.Run(t)
	c := s.Client(t, memwrite.WithObserver(otelmemwrite.NewObserver(otelmemwrite.WithTracerProvider(provider))))
	if _, err := c.AddAsync(t.Context(), request("1", text)); err != nil {
		t.Fatal(err)
	}
	_, err := c.AddAsync(t.Context(), request("1", "Quoted in an error: "+text))
	if !errors.Is(err, memwrite.ErrConflict) {
		t.Fatal(err)
	}
	spans := recorder.Ended()
	if len(spans) != 2 || spans[1].Status().Code != codes.Error || value(spans[1], "error.type") == "" || value(spans[1], "http.response.status_code") != "409" {
		t.Fatalf("%d spans, the last %v", len(spans), spans[len(spans)-1].Attributes())
	}
	for _, sp := range spans {
		all := fmt.Sprint(sp.Name(), sp.Attributes(), sp.Events(), sp.Status())
		for _, secret := range []string{"Thursday", "sam", "note-1", s.FishMemKey, s.URL} {
			if strings.Contains(all, secret) {
				t.Errorf("%q is in %s", secret, all)
			}
		}
	}
}

func TestCallsAreMeasured(t *testing.T) {
	reader := metric.NewManualReader()
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	s := mockserver.Run(t)
	c := s.Client(t, memwrite.WithObserver(otelmemwrite.NewObserver(otelmemwrite.WithMeterProvider(meters))))
	s.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 429, RetryAfter: "0"})
	if _, err := c.AddAsync(t.Context(), request("1", text)); err != nil {
		t.Fatal(err)
	}
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				got[m.Name] += int(p.Value)
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				got[m.Name] += int(p.Count)
			}
		}
	}
	if got["memwrite.client.call.duration"] != 1 || got["memwrite.client.tries"] != 2 || got["memwrite.client.retry.wait"] != 1 || got["memwrite.client.flow"] < 2 {
		t.Errorf("measured %v", got)
	}
}

func TestAttemptsThatWereLostAreEndedByTheNextClaim(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	runs := otelmemwrite.NewRuns(otelmemwrite.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))))
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for n, st := range []otelmemwrite.Step{{Kind: "claimed", Attempt: 1}, {Kind: "reclaimed", Attempt: 2, Class: "interrupted"}, {Kind: "retrying", Class: "provider_timeout"}, {Kind: "claimed", Attempt: 3}, {Kind: "failed", Class: "invalid_output"}, {Kind: "fenced", Attempt: 1}, {Kind: "planned"}} {
		st.At, st.TaskID, st.Operation, st.Traceparent = at.Add(time.Duration(n)*time.Second), "task_1", "infer", parent
		runs.Observe(st)
	}
	var got []string
	for _, sp := range recorder.Ended() {
		if sp.SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" || sp.Parent().SpanID().String() != "00f067aa0ba902b7" {
			t.Errorf("%s is in trace %s under %s", sp.Name(), sp.SpanContext().TraceID(), sp.Parent().SpanID())
		}
		got = append(got, value(sp, "memwrite.attempt")+" "+value(sp, "error.type")+" "+sp.EndTime().Sub(sp.StartTime()).String())
	}
	if want := []string{"1 lost 1s", "2 provider_timeout 1s", "3 invalid_output 1s"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Without a trace the run begins one of its own.
	runs.Observe(otelmemwrite.Step{Kind: "claimed", TaskID: "task_2", At: at, Traceparent: "nonsense"})
	runs.Observe(otelmemwrite.Step{Kind: "succeeded", TaskID: "task_2", At: at})
	if last := recorder.Ended()[len(recorder.Ended())-1]; last.Parent().IsValid() || !last.SpanContext().TraceID().IsValid() {
		t.Error("nonsense was taken for a parent")
	}
}
