package doc_test

import (
	"reflect"
	"testing"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// over is what is read of a document and what was written beside it.
func over(t *testing.T, body, standing []byte, version int64) protocol.Task {
	t.Helper()
	got, err := doc.Task(body, version)
	if err == nil {
		err = doc.Stand(&got, standing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Whatever a step may change of a task is either how it stands, and comes back
// over the document as it was, or has the whole document written.
func TestHowATaskStandsComesBackOverItsDocument(t *testing.T) {
	t.Parallel()
	was := filled[protocol.Task]()
	body, err := doc.OfTask(&was)
	if err != nil {
		t.Fatal(err)
	}
	apart, n := 0, 1000
	for i := range reflect.TypeFor[protocol.Task]().NumField() {
		name := reflect.TypeFor[protocol.Task]().Field(i).Name
		for _, empty := range []bool{true, false} {
			is := was
			if f := reflect.ValueOf(&is).Elem().Field(i); empty {
				f.SetZero()
			} else {
				fill(f, &n)
			}
			if !doc.SameBody(&was, &is) {
				continue
			}
			apart++
			standing, err := doc.AppendStanding(nil, &is)
			if err != nil {
				t.Fatal(err)
			}
			if got := over(t, body, standing, is.Version); !reflect.DeepEqual(got, is) {
				t.Errorf("%s: got  %+v\nwant %+v", name, got, is)
			}
			want := was
			want.Version = is.Version + 1
			if got := over(t, body, standing, want.Version); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: of another version: got  %+v\nwant %+v", name, got, want)
			}
		}
	}
	if apart < 20 {
		t.Errorf("%d changes were written apart", apart)
	}
	for i := range body {
		if err := doc.Stand(&was, body[:i]); err == nil {
			t.Fatalf("%s is read", body[:i])
		}
	}
}
