package doc_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/memwrite/memwrite-go/internal/protocol"
	"github.com/memwrite/memwrite-go/server/internal/doc"
)

// fill sets every field of a value, so that one that the document forgets is
// found the day it is added.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 8, 5, 12, 0, 0, *n, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"b" : "<1>"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString("s" + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	default:
		panic(v.Kind().String())
	}
}

func filled[T any]() T {
	var out T
	n := 0
	fill(reflect.ValueOf(&out).Elem(), &n)
	return out
}

func TestEveryFieldComesBack(t *testing.T) {
	t.Parallel()
	for _, want := range []protocol.Task{filled[protocol.Task](), {}, {Plan: &protocol.Plan{Mutations: []protocol.Mutation{}}, Result: &protocol.Result{}}} {
		raw, err := doc.OfTask(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := doc.Task(raw, want.Version)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v\n%v", got, want, err)
		}
	}
	r := filled[protocol.Record]()
	raw, err := doc.OfRecord(&r)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := doc.Record(raw, r.Projected); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got  %+v\nwant %+v\n%v", got, r, err)
	}
	w := filled[protocol.Workspace]()
	raw, err = doc.OfWorkspace(w)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := doc.Workspace(raw); err != nil || got != w {
		t.Errorf("got %+v, want %+v, %v", got, w, err)
	}
}

// A row that is on somebody's disk must be read by every later version: these
// files are never written again, only added to.
func TestRowsOfTheFirstVersionAreRead(t *testing.T) {
	t.Parallel()
	again := func(name string, write func() ([]byte, error), through func([]byte) ([]byte, error)) {
		t.Helper()
		path := filepath.Join("testdata", name)
		raw, err := os.ReadFile(path)
		if os.IsNotExist(err) && os.Getenv("MEMWRITE_UPDATE_ROWS") != "" {
			if raw, err = write(); err == nil {
				err = os.WriteFile(path, raw, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := through(raw)
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(back, &after) != nil || !within(before, after) {
			t.Errorf("%s loses something when it is read:\n%s", name, back)
		}
	}
	task, record := filled[protocol.Task](), filled[protocol.Record]()
	again("task-1.json", func() ([]byte, error) { return doc.OfTask(&task) }, func(raw []byte) ([]byte, error) {
		got, err := doc.Task(raw, 1)
		if err != nil {
			return nil, err
		}
		return doc.OfTask(&got)
	})
	again("record-1.json", func() ([]byte, error) { return doc.OfRecord(&record) }, func(raw []byte) ([]byte, error) {
		got, err := doc.Record(raw, true)
		if err != nil {
			return nil, err
		}
		return doc.OfRecord(&got)
	})
}

// within says that everything of a is in b under the same name.
func within(a, b any) bool {
	am, ok := a.(map[string]any)
	if !ok {
		return reflect.DeepEqual(a, b)
	}
	bm, ok := b.(map[string]any)
	for k := range am {
		ok = ok && within(am[k], bm[k])
	}
	return ok
}

func TestADocumentThatIsNoneIsNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := doc.Task([]byte(`{"id": secret words`), 1)
	if err == nil || len(err.Error()) > 80 {
		t.Errorf("got %v", err)
	}
}

func FuzzTask(f *testing.F) {
	want := filled[protocol.Task]()
	raw, _ := doc.OfTask(&want)
	f.Add(raw)
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := doc.Task(raw, 1)
		if err != nil {
			return
		}
		again, err := doc.OfTask(&got)
		if err != nil {
			return // a time beyond the year 9999
		}
		second, err := doc.Task(again, 1)
		if err != nil || second.ID != got.ID || second.State != got.State {
			t.Fatalf("%v: %+v", err, second)
		}
	})
}
