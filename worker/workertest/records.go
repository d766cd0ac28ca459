package workertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

// record is one of the drill's, with what has to become of it.
type record struct {
	data []byte
	text string // what its memory says
	key  string // what a fault is narrowed to it by
	dead bool
}

// records makes n of them, of all four kinds; one in fifty can never pass.
func records(n int) []record {
	out := make([]record, n)
	for i := range out {
		id, user := fmt.Sprintf("%04d", i), fmt.Sprintf("customer-%02d", i%60)
		text := fmt.Sprintf("Customer %s asked on day %d to be called about invoice %d.", user, i%28+1, 70000+i)
		fields := map[string]any{"kind": "note", "id": id, "end_user": user, "text": text}
		r := record{text: text, key: "note-" + id}
		switch i % 10 {
		case 0, 1:
			fields["write"] = "infer"
		case 2:
			fields["write"] = "verbatim"
		case 3:
			fields = map[string]any{"write": "turn", "end_user": user, "text": text, "speaker": user, "occurred_at": fmt.Sprintf("2026-06-16T09:30:%02d.%03dZ", i%60, i)}
			r.key = text
		}
		if i%50 == 24 {
			r.dead = true
			spoil(i/50, fields)
		}
		r.data, _ = json.Marshal(fields)
		if i%50 == 24 && i/50%6 == 0 {
			r.data = r.data[:len(r.data)-10] // not JSON
		}
		out[i] = r
	}
	return out
}

// spoil makes a record one that can never pass, in one of six ways.
func spoil(way int, fields map[string]any) {
	delete(fields, "write")
	switch way % 6 {
	case 0: // the caller cuts it short
	case 1:
		fields["text"] = " "
	case 2:
		fields["text"] = "Too small" // for the service
	case 3:
		fields["kind"] = "old" // a known reference, see seed
	case 4:
		fields["kind"], fields["write"] = "old", "infer"
	case 5:
		fields["kind"], fields["write"] = "broken", "infer" // the model answers no plan
	}
}

// seed writes what the spoiled records collide with.
func seed(ctx context.Context, srv *mockserver.Server, client *memwrite.Client, all []record) (texts int, err error) {
	for i := range all {
		ref := memwrite.NewRef("old", fmt.Sprintf("%04d", i))
		text := fmt.Sprintf("An older note with number %d.", i)
		switch {
		case !all[i].dead:
			continue
		case i/50%6 == 3:
			_, err = client.Add(ctx, memwrite.AddRequest{Text: text, EndUserID: fmt.Sprintf("customer-%02d", i%60), Ref: ref})
			texts++
		case i/50%6 == 4:
			_, err = client.AddAndWait(ctx, memwrite.InferRequest{Content: text, Scope: memwrite.Scope{UserID: "old"}, Key: ref})
			texts++
		case i/50%6 == 5:
			srv.Arm(mockserver.Fault{Kind: mockserver.ProviderInvalid, Times: -1, Key: fmt.Sprintf("broken-%04d", i)})
		}
		if err != nil {
			return 0, err
		}
	}
	return texts, nil
}

// copies is every record one to three times, in any order.
func copies(all []record, rng *rand.Rand) [][]byte {
	var out [][]byte
	for _, r := range all {
		for range 1 + rng.IntN(3) {
			out = append(out, r.data)
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
