package service

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// halfPair says that a JSON string holds an escaped surrogate without its other
// half. Go reads every one of them as the same U+FFFD: what is stored would not
// be what was sent, and two texts would be one.
func halfPair(raw json.RawMessage, read string) bool {
	if !bytes.Contains(raw, []byte(`\u`)) || !strings.ContainsRune(read, utf8.RuneError) {
		return false
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' || i+4 >= len(raw) {
			continue
		}
		one := escaped(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(one) {
			continue
		}
		if i+6 >= len(raw) || raw[i+1] != '\\' || raw[i+2] != 'u' || utf16.DecodeRune(one, escaped(raw[i+3:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// escaped is the number of four hex digits.
func escaped(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 32)
	return rune(n)
}

// utf16Len is a string's length as a JavaScript service counts it.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
