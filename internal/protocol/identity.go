package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"strings"
	"time"
)

// Hash is a SHA-256. Keys, references and fingerprints are stored as nothing
// else, so that a stolen store does not give away what callers named.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero says that there is no hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// hashOf is the hash of a list of parts.
func hashOf(domain string, parts ...string) Hash {
	var room [256]byte // for most, so that nothing is allocated
	return sha256.Sum256(digest(room[:0]).text(domain).text(parts...))
}

// TurnWindow is how long a turn is recognised (service fact: 30 days).
const TurnWindow = 30 * 24 * time.Hour

// Identity is what makes a second request the same intent as a first.
type Identity struct {
	// Hash is zero when the caller gave no name: every request is then an
	// intent of its own.
	Hash Hash
	// Window is how long it is recognised, counted from acceptance; 0 is for
	// good.
	Window time.Duration
	// FirstWins: another command under this identity is a replay of the first
	// rather than a conflict. References and turns are like that.
	FirstWins bool
}

// CommandKey is the identity of an Idempotency-Key. All operations of FishMem
// share it: the key of a write conflicts with any other write and with a
// deletion.
func CommandKey(workspace, key string) Hash { return hashOf("memories", workspace, key) }

// ClientRef is the identity of a record's reference, which is the caller's own
// within tenant, project and end user.
func ClientRef(workspace, tenant, project, endUser, ref string) Hash {
	return hashOf("client_ref", workspace, tenant, project, endUser, ref)
}

// ReplayKey is the identity of a turn. An absent speaker or time is the empty
// string; times are compared as they are spelled.
func ReplayKey(workspace, tenant, user, speaker, occurredAt, text string) Hash {
	return hashOf("turn", workspace, tenant, user, speaker, occurredAt, text)
}

// IdentityOf gives the identity of a command in a workspace.
func IdentityOf(workspace string, c *Command) Identity {
	switch c.Kind {
	case MemorySyncAdd:
		if c.ClientRef == "" {
			return Identity{}
		}
		return Identity{Hash: ClientRef(workspace, c.Scope.Tenant, c.Scope.Project, c.Scope.EndUser, c.ClientRef), FirstWins: true}
	case Turn:
		return Identity{Hash: ReplayKey(workspace, c.Scope.Tenant, c.Scope.EndUser, c.Speaker, c.OccurredAt, c.Text), Window: TurnWindow, FirstWins: true}
	default:
		if c.Kind.deletes() && c.Key == "" {
			return Identity{}
		}
		return Identity{Hash: CommandKey(workspace, c.Key)}
	}
}

// Fingerprint is the SHA-256 of the command's meaning: scope, mode, content and
// options, and nothing of how or when it was sent. JSON key order and spaces
// between tokens do not count; spaces inside a content and the order of
// messages do.
func Fingerprint(c *Command) Hash {
	var room [512]byte
	d := digest(room[:0]).text("command", string(c.Kind), c.Scope.Tenant, c.Scope.Project, c.Scope.EndUser, c.Scope.UserID, c.Scope.AgentID, c.Scope.RunID,
		c.Text, c.Speaker, c.OccurredAt, c.EventDate, string(Canonical(c.Metadata)), c.Source, c.EventType, c.SessionID, c.Target)
	d = d.number(uint64(len(c.Messages)))
	for _, m := range c.Messages {
		d = d.text(m.Role, m.Content)
	}
	d = d.number(uint64(len(c.Tags))).text(c.Tags...).number(uint64(c.TTL))
	if c.Importance != nil {
		d = d.number(math.Float64bits(*c.Importance))
	} else {
		d = d.text("")
	}
	if c.KeepSimilar {
		d = d.text("keep")
	}
	return sha256.Sum256(d)
}

// digest is values with their lengths, so that no two lists give one hash by
// moving a boundary.
type digest []byte

func (d digest) text(parts ...string) digest {
	for _, p := range parts {
		d = append(d.number(uint64(len(p))), p...)
	}
	return d
}

func (d digest) number(n uint64) digest { return binary.BigEndian.AppendUint64(d, n) }

// Canonical writes a JSON document with sorted keys, without spaces, numbers
// as they were spelled. What is no single JSON document is returned unchanged;
// empty input and null both give nothing.
func Canonical(doc json.RawMessage) []byte {
	if len(doc) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return doc
	}
	if _, err := d.Token(); err != io.EOF {
		return doc
	}
	if v == nil {
		return nil
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return doc
	}
	return []byte(strings.TrimSuffix(out.String(), "\n"))
}
