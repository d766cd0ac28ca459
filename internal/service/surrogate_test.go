package service

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// Any units at all, written as escapes: a half is seen if and only if reading
// them gives a character that none of them wrote.
func FuzzHalfPair(f *testing.F) {
	for _, s := range []string{"a", "\xd8\x3d\xde\x00", "\xd8\x00", "\xdf\xff\xd8\x00", "\xff\xfd", "\xd8\x3d\xd8\x3d\xde\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var raw strings.Builder
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			u := uint16(b[i])<<8 | uint16(b[i+1])
			units = append(units, u)
			fmt.Fprintf(&raw, `\u%04x`, u)
		}
		want := false
		for i := 0; i < len(units); i++ {
			switch r := rune(units[i]); {
			case !utf16.IsSurrogate(r):
			case i+1 < len(units) && utf16.DecodeRune(r, rune(units[i+1])) != utf8.RuneError:
				i++
			default:
				want = true
			}
		}
		quoted := []byte(`"` + raw.String() + `"`)
		read, ok := textOf(quoted)
		if !ok {
			t.Fatalf("%s is no string", quoted)
		}
		if got := halfPair(quoted, read); got != want {
			t.Fatalf("%s: %v", quoted, got)
		}
	})
}
