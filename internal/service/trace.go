package service

import (
	"context"
	"strings"
)

// submit hands a write to the backend together with the trace its request is
// part of.
func (s *Service) submit(ctx context.Context, w Write) (Task, bool, error) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		w.Trace = c.trace
	}
	return s.backend.Submit(ctx, w)
}

// traceparent accepts a header of W3C Trace Context, version 00: 32 and 16
// lower-case hex digits, neither all zero, and two of flags. Anything else is
// treated as absent, as the recommendation asks.
func traceparent(header string) string {
	if len(header) != 55 || header[:3] != "00-" || header[35] != '-' || header[52] != '-' {
		return ""
	}
	for i, c := range []byte(header) {
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	if strings.Trim(header[3:35], "0") == "" || strings.Trim(header[36:52], "0") == "" {
		return ""
	}
	return header
}
