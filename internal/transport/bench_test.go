package transport

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

type canned struct{}

func (canned) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	return &http.Response{
		StatusCode: 200, Header: http.Header{}, ContentLength: 300, Request: req,
		Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 300))),
	}, nil
}

// What the loop costs a call that works the first time, without the network.
func BenchmarkCannedCall(b *testing.B) {
	base, _ := url.Parse("http://server.example")
	c, err := New(Config{BaseURL: base, Classify: byStatus, HTTPClient: &http.Client{Transport: canned{}}})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(strings.Repeat("x", 500))
	req, _ := http.NewRequest(http.MethodPost, "http://server.example/write", nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Do(b.Context(), Call{Op: "write", Method: req.Method, URL: req.URL, Header: req.Header, Body: body, Safe: true}); err != nil {
			b.Fatal(err)
		}
	}
}
