package ingest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go"
)

// What nobody answers says so in the words of the connection, and without the
// address.
func TestTheReasonOfADeadAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	client, err := memwrite.New(memwrite.WithMemorySync("http://"+address, "ms_live_0123"),
		memwrite.WithRetryPolicy(memwrite.RetryPolicy{MaxTries: 1, Base: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	counts, err := Run(t.Context(), client, Config{Attempts: 1, In: strings.NewReader(`{"id":"1","end_user":"acme","text":"Our office moved."}`)})
	if err != nil || counts.Unfinished != 1 || counts.Why != "no answer came: connection refused" {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestTheReasonOfARefusalIsTheServices(t *testing.T) {
	t.Parallel()
	err := &memwrite.Error{Kind: memwrite.KindInvalidInput, Status: 400, Message: "end_user_id is too long"}
	if got := reasonOf("the same request can never pass", err); got != "the same request can never pass: end_user_id is too long" {
		t.Error(got)
	}
}
