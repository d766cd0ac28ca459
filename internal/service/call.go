package service

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

type callKey struct{}

// call is what is known of a request before its handler runs. It is the context
// the handler finds it in, too.
type call struct {
	context.Context
	key       Key
	wire      wire
	ids       [2]string // of the request and of its trace; the header's values lie here
	requestID string
	trace     string // traceparent, "" without a valid one
}

func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *call {
	if c, ok := r.Context().Value(callKey{}).(*call); ok {
		return c
	}
	return &call{}
}

// wireOf tells the services apart by path; they share no path.
func wireOf(path string) wire {
	for _, p := range []string{
		"/v1/memories", "/v1/events", "/v1/operations", "/v1/health", "/v1/usage",
		// Those that are not served here are not the other service's either.
		"/v1/entities", "/v1/documents", "/v1/document-uploads", "/v1/exports", "/v1/imports", "/v1/beliefs", "/v1/profile", "/v1/openapi.json",
	} {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || rest[0] == '/') {
			return fishMem
		}
	}
	return memorySync
}

// newRequestIDs are the id of a request and that of its trace: 32 hex digits on
// MemorySync, and one UUID on FishMem. They decide nothing, so they may come from
// the machine's own randomness.
func newRequestIDs(on wire) [2]string {
	var raw [32]byte
	for at := 0; at < len(raw); at += 8 {
		binary.LittleEndian.PutUint64(raw[at:], rand.Uint64())
	}
	if on == memorySync {
		var digits [64]byte
		hex.Encode(digits[:], raw[:])
		both := string(digits[:])
		return [2]string{both[:32], both[32:]}
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	h := hex.EncodeToString(raw[:16])
	return [2]string{h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]}
}
