package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// Whatever a file holds, reading it ends, lines are named in their order, and a
// row of CSV becomes JSON.
func FuzzSource(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf{}\r\n\n{"), false)
	f.Add([]byte("id,text,tags\n1,\"a\nb\",x;y\n2,\"c\n3,d,"), true)
	f.Add([]byte("id\n\"\"\"\n\"\n\n\r\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, csv bool) {
		var src source = &jsonl{newLines(bytes.NewReader(data))}
		if csv {
			src = &csvFile{lines: newLines(bytes.NewReader(data))}
		}
		most, last := bytes.Count(data, []byte("\n"))+1, 0
		for n := 0; ; n++ {
			it, err := src.next()
			if errors.Is(err, io.EOF) || err != nil && csv {
				break
			}
			if err != nil || n > most || it.line <= last || it.line > most {
				t.Fatalf("item %d of at most %d on line %d after %d: %v", n, most, it.line, last, err)
			}
			last = it.line
			if csv && it.data != nil && it.err == nil && !json.Valid(it.data) {
				t.Fatalf("line %d is no JSON: %s", it.line, it.data)
			}
		}
		if src.offset() > int64(len(data)) {
			t.Fatalf("%d of %d bytes read", src.offset(), len(data))
		}
	})
}
