package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	memwrite "github.com/memwrite/memwrite-go"
)

// TestThePageStaysResponsive fills the store and measures the list and a
// filter of it beside a plain page of the same table. What it takes is printed
// and never fails the test: machines are shared.
func TestThePageStaysResponsive(t *testing.T) {
	writes, rounds := 300, 3
	if *full {
		writes, rounds = 100_000, 9
	}
	b := open(t)
	b.fill(writes)
	b.visit("")
	b.sees("100 writes shown")
	html := js[string](b, "'<!doctype html><title>plain</title>' + document.querySelector('#live').outerHTML")
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		_, _ = w.Write([]byte(html))
	}))
	t.Cleanup(plain.Close)

	paint := func(url string) float64 {
		b.do(chromedp.Navigate(url))
		b.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		return js[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
	}
	var base, list, filter []float64
	for range rounds {
		base = append(base, paint(plain.URL))
		list = append(list, paint(b.server.InspectorURL()))
		filter = append(filter, paint(b.server.InspectorURL()+"?state=FAILED&q=nobody"))
	}
	b.forgive(plain.URL)
	best := func(v []float64) float64 { return slices.Min(v) }
	figure("inspector.first_paint_ms", best(list), 200)
	figure("inspector.filter_ms", best(filter), 200)
	fmt.Printf("figure inspector.first_paint_ratio %.2f\n", best(list)/best(base))
	fmt.Printf("figure inspector.filter_ratio %.2f\n", best(filter)/best(base))
}

func figure(name string, value, target float64) {
	verdict := "ok"
	if value > target {
		verdict = "short"
	}
	fmt.Printf("figure %s %.1f <= %.0f %s\n", name, value, target, verdict)
}

// fill stores n writes verbatim.
func (b *tab) fill(n int) {
	b.Helper()
	const callers = 16
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < n; i += callers {
				_, err := b.client.AddVerbatim(b.Context(), memwrite.InferRequest{
					Key: memwrite.NewRef("fill", fmt.Sprint(i)), Scope: memwrite.Scope{UserID: fmt.Sprintf("user-%d", i%1000)}, Content: fmt.Sprintf("Note %d ships on day %d.", i, i%31)})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// forgive takes requests to another server of the test off the list.
func (b *tab) forgive(url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = slices.DeleteFunc(b.asked, func(u string) bool { return u == url+"/" || u == url+"/favicon.ico" })
	b.troubles = nil
}
