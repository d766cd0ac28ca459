package service

import (
	"net/http"
	"strings"
	"time"
)

// Headers in the spelling net/http keeps them under, which saves it the work.
const (
	headerAPIKey    = "X-Api-Key"
	headerRequestID = "X-Request-Id"
	headerTraceID   = "X-Trace-Id"
	headerNoSniff   = "X-Content-Type-Options"
)

// authenticate finds the caller's key. FishMem takes a Bearer token. MemorySync
// takes X-API-Key and looks at Authorization first, so that a Bearer it does
// not know defeats a valid key beside it.
func (s *Service) authenticate(r *http.Request, on wire) (Key, *failure) {
	now := s.sched.Now()
	if on == fishMem {
		key, ok := s.keys.find(bearer(r), ServiceFishMem)
		switch {
		case !ok || key.Revoked:
			return Key{}, fail(http.StatusUnauthorized, "INVALID_API_KEY", "the API key is missing, unknown or revoked")
		case key.expired(now):
			return Key{}, fail(http.StatusUnauthorized, "API_KEY_EXPIRED", "the API key has expired")
		}
		return key, nil
	}
	secret := r.Header.Get(headerAPIKey)
	if r.Header.Get("Authorization") != "" {
		secret = bearer(r)
	} else if secret == "" {
		return Key{}, detail(http.StatusUnauthorized, "API key missing")
	}
	key, ok := s.keys.find(secret, ServiceMemorySync)
	switch {
	case ok && key.Revoked:
		return Key{}, detail(http.StatusForbidden, "API key revoked")
	case !ok || key.expired(now):
		return Key{}, detail(http.StatusUnauthorized, "Invalid API key")
	}
	return key, nil
}

func (k Key) expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// bearer is the token of "Authorization: Bearer token"; the scheme's case does
// not matter.
func bearer(r *http.Request) string {
	fields := strings.Fields(r.Header.Get("Authorization"))
	if len(fields) != 2 || !strings.EqualFold(fields[0], "Bearer") {
		return ""
	}
	return fields[1]
}

// permit checks what the key may do against what the call needs.
func permit(k Key, on wire, scope string) *failure {
	if scope == "" || k.may(scope) {
		return nil
	}
	if on == fishMem {
		return fail(http.StatusForbidden, "INSUFFICIENT_PERMISSION", "the API key lacks the permission "+scope)
	}
	return detail(http.StatusForbidden, "Insufficient scope. Missing: "+scope)
}
