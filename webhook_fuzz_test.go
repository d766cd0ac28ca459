package memwrite_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"
	"time"

	memwrite "github.com/memwrite/memwrite-go"
)

// Whatever comes, only what was signed with the secret passes, and what passes
// is a message.
func FuzzWebhook(f *testing.F) {
	const secret = "whsec_fuzz"
	f.Add("1785499200", "", []byte(`{"id":"memory_add:task_1","type":"memory_add","created_at":"2026-07-31T12:00:00.000Z","project_id":"p","data":{"operation_id":"task_1"}}`), true)
	f.Add("1785499200", "v1=", []byte(`{}`), false)
	f.Add("-1", "v1=00", []byte(`{"id":1}`), true)
	f.Add("99999999999999999999", "", []byte(`{"id":"a","type":"b"}{}`), true)
	f.Add(" 1785499200", "V1=AA", []byte("\xff\xfe"), true)
	f.Add("1785499200", "", []byte(`{"ID":"a","TYPE":"memory_add","data":null}`), true)
	now := time.Unix(1785499200, 0)
	v := memwrite.WebhookVerifier{Secrets: []string{secret}, Now: func() time.Time { return now }}
	f.Fuzz(func(t *testing.T, stamp, signature string, body []byte, signed bool) {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(stamp + "."))
		mac.Write(body)
		right := "v1=" + hex.EncodeToString(mac.Sum(nil))
		if signed {
			signature = right
		}
		h := http.Header{"X-Fishmem-Timestamp": {stamp}, "X-Fishmem-Signature": {signature}}
		e, err := v.Parse(h, body)
		if err != nil {
			if !errors.Is(err, memwrite.ErrWebhookSignature) && !errors.Is(err, memwrite.ErrWebhookExpired) && !errors.Is(err, memwrite.ErrWebhookMalformed) {
				t.Fatal(err)
			}
			return
		}
		if !signed && signature != right {
			sum, _ := hex.DecodeString(signature[3:])
			if !hmac.Equal(sum, mac.Sum(nil)) {
				t.Fatalf("%q passed", signature)
			}
		}
		if e.ID == "" || e.Type == "" {
			t.Fatalf("no message: %+v", e)
		}
		if m, ok := e.MemoryAdded(); ok && m.EventID == "" {
			t.Fatalf("names no event: %+v", m)
		}
	})
}
