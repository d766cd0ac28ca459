package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a key may do. MemorySync's names and FishMem's do not overlap, so one
// list serves a key of either.
const (
	ScopeMemoryRead     = "memory:read"
	ScopeMemoryAdd      = "memory:add"
	ScopeMemoryAll      = "memory:*"
	ScopeProjectsRead   = "projects:read"
	ScopeMemoryWrite    = "memory:write"
	ScopeOperationsRead = "operations:read"
)

// Key is an API key as the server knows it: never the key itself.
type Key struct {
	Hash      [sha256.Size]byte // SHA-256 of the key
	Workspace string
	// Service is "memorysync" or "fishmem": which auth header it travels in.
	Service string
	Scopes  []string
	Expires time.Time // zero: never
	Revoked bool
	Project string // pinned project of a MemorySync key; "" is the default project
}

// NewKey hashes secret; nothing else of it is kept.
func NewKey(secret, workspace, service string, scopes ...string) Key {
	return Key{Hash: sha256.Sum256([]byte(secret)), Workspace: workspace, Service: service, Scopes: scopes}
}

// id names the key where counters are kept; it cannot be turned back.
func (k Key) id() string { return hex.EncodeToString(k.Hash[:8]) }

func (k Key) may(scope string) bool {
	if slices.Contains(k.Scopes, scope) {
		return true
	}
	return slices.Contains(k.Scopes, ScopeMemoryAll) && strings.HasPrefix(scope, "memory:")
}

// Keys is the set of keys a server accepts. It may change while serving.
type Keys struct {
	mu   sync.Mutex // of those who change it
	keys atomic.Pointer[[]Key]
}

// NewKeys makes a set.
func NewKeys(keys ...Key) *Keys {
	s := &Keys{}
	s.keys.Store(&keys)
	return s
}

// Put adds a key, or replaces the one with the same hash.
func (s *Keys) Put(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Clone(*s.keys.Load())
	if i := slices.IndexFunc(keys, func(had Key) bool { return had.Hash == k.Hash }); i >= 0 {
		keys[i] = k
	} else {
		keys = append(keys, k)
	}
	s.keys.Store(&keys)
}

// find compares with every key in constant time and does not stop at a match,
// so that how long it takes says nothing about which key, or how much of one,
// was right.
func (s *Keys) find(secret, service string) (Key, bool) {
	sum := sha256.Sum256([]byte(secret))
	keys := *s.keys.Load()
	var found Key
	ok := 0
	for i := range keys {
		if subtle.ConstantTimeCompare(sum[:], keys[i].Hash[:]) == 1 && keys[i].Service == service {
			found, ok = keys[i], 1
		}
	}
	return found, ok == 1
}
