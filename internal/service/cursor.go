package service

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// nextCursor is where a page ended: base64 of the creation time, NUL and the
// id. It says nothing of the workspace, since a cursor only ever continues a
// list inside the workspace of the key that shows it.
func nextCursor(at time.Time, id string) *string {
	c := base64.StdEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + "\x00" + id))
	return &c
}

// readCursor turns a cursor back; limit+1 items are asked for, so that the
// last page is known to be the last.
func readCursor(cursor *string, limit int) (Page, *failure) {
	page := Page{Limit: limit + 1}
	if cursor == nil || *cursor == "" {
		return page, nil
	}
	bad := fail(http.StatusBadRequest, "INVALID_CURSOR", "the cursor is not valid")
	if len(*cursor) > 2048 {
		return page, bad
	}
	raw, err := base64.StdEncoding.DecodeString(*cursor)
	if err != nil {
		return page, bad
	}
	at, id, ok := strings.Cut(string(raw), "\x00")
	if !ok || id == "" {
		return page, bad
	}
	if page.At, err = time.Parse(time.RFC3339Nano, at); err != nil {
		return page, bad
	}
	page.ID = id
	return page, nil
}
