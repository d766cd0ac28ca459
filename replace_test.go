package memwrite_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	memwrite "github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/mockserver"
)

const (
	nutsText    = "I am allergic to peanuts."
	theNutsText = "I am allergic to the peanuts."
	officeText  = "Our office moved to Cardiff in May."
)

func note(id, text string) memwrite.AddRequest {
	return memwrite.AddRequest{Text: text, EndUserID: "acme", Ref: memwrite.NewRef("note", id)}
}

// edited is the next version of a note.
func edited(r memwrite.AddRequest, text string) memwrite.AddRequest {
	r.Text, r.Ref = text, r.Ref.Version(2)
	return r
}

func add(t *testing.T, c *memwrite.Client, r memwrite.AddRequest) *memwrite.AddResult {
	t.Helper()
	res, err := c.Add(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// owners are the references that made what the server holds.
func owners(t *testing.T, srv *mockserver.Server) []string {
	t.Helper()
	var out []string
	for _, r := range srv.Records() {
		for _, name := range []string{"note-1", "note-1-v2", "note-2", "note-2-v2"} {
			if strings.Contains(string(r.Metadata), `"`+memwrite.RefField+`":"`+name+`"`) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// An edit of a record that only matched another one's memory leaves that memory.
func TestReplaceKeepsWhatAnotherRecordMade(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"found by sending the old one again": false, "with the ids of the first answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t)
			c := srv.Client(t)
			first := add(t, c, note("1", nutsText))
			second := add(t, c, note("2", nutsText))
			if first.Matched || first.Owner != "note-1" || !second.Matched || second.Owner != "note-1" || second.Memory.ID != first.Memory.ID {
				t.Fatalf("first %+v, second %+v", first, second)
			}
			req := memwrite.ReplaceRequest{Old: note("2", nutsText), New: edited(note("2", ""), officeText)}
			if known {
				req.OldIDs = second.MemoryIDs
			}
			for range 2 { // a second call finishes nothing more and undoes nothing
				res, err := c.Replace(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if res.Forgotten != nil || !slices.Equal(res.KeptIDs, first.MemoryIDs) || res.Added.Matched {
					t.Errorf("forgotten %+v, kept %v", res.Forgotten, res.KeptIDs)
				}
				if got := owners(t, srv); !slices.Equal(got, []string{"note-1", "note-2-v2"}) {
					t.Errorf("the server holds memories of %v", got)
				}
			}
		})
	}
}

func TestReplaceForgetsItsOwnMemoryOnce(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := srv.Client(t)
	first := add(t, c, note("1", nutsText))
	req := memwrite.ReplaceRequest{Old: note("1", nutsText), New: edited(note("1", ""), officeText)}
	res, err := c.Replace(t.Context(), req)
	if err != nil || res.Forgotten == nil || !slices.Equal(res.Forgotten.DeletedIDs, first.MemoryIDs) || len(res.KeptIDs) != 0 {
		t.Fatalf("%+v %v", res, err)
	}
	if res, err = c.Replace(t.Context(), req); err != nil || res.Forgotten != nil || len(res.KeptIDs) != 0 {
		t.Errorf("a second call: %+v %v", res, err)
	}
	if got := owners(t, srv); !slices.Equal(got, []string{"note-1-v2"}) {
		t.Errorf("the server holds memories of %v", got)
	}
}

// An edit that is close to the old text is matched to it, unless the filter is off.
func TestReplaceByACloseText(t *testing.T) {
	t.Parallel()
	off := false
	for _, filter := range []*bool{nil, &off} {
		t.Run(fmt.Sprint("filter off: ", filter != nil), func(t *testing.T) {
			t.Parallel()
			srv := mockserver.Run(t)
			c := srv.Client(t)
			first := add(t, c, note("1", nutsText))
			next := edited(note("1", ""), theNutsText)
			next.Deduplicate = filter
			res, err := c.Replace(t.Context(), memwrite.ReplaceRequest{Old: note("1", nutsText), New: next})
			if err != nil {
				t.Fatal(err)
			}
			if filter == nil && (!res.Added.Matched || res.Added.Owner != "note-1" || !slices.Equal(res.KeptIDs, first.MemoryIDs) || res.Forgotten != nil) ||
				filter != nil && (res.Added.Matched || res.Added.Owner != "note-1-v2" || len(res.KeptIDs) != 0 || res.Forgotten == nil) {
				t.Errorf("added %+v, kept %v, forgotten %+v", res.Added, res.KeptIDs, res.Forgotten)
			}
		})
	}
}

// Whatever cannot be shown to be the old version's stays.
func TestReplaceForgetsOnlyWhatIsKnown(t *testing.T) {
	t.Parallel()
	own := `{"id":%s,"text":"t","metadata":{"memwrite_text_sha256":"ab","memwrite_client_ref":"note-1"}}`
	for name, tc := range map[string]struct {
		status       int
		memory       string
		forgets, err bool
		kept         int
	}{
		"its own":             {status: 200, memory: own, forgets: true},
		"another one's":       {status: 200, memory: strings.Replace(own, "note-1", "note-9", 1), kept: 2},
		"a later version's":   {status: 200, memory: strings.Replace(own, "note-1", "note-1-v2", 1), kept: 2},
		"no reference":        {status: 200, memory: `{"id":%s,"text":"t","metadata":{"memwrite_text_sha256":"ab"}}`, kept: 2},
		"no metadata":         {status: 200, memory: `{"id":%s,"text":"t","metadata":null}`, kept: 2},
		"metadata is a list":  {status: 200, memory: `{"id":%s,"text":"t","metadata":[1]}`, kept: 2},
		"the name in a value": {status: 200, memory: `{"id":%s,"text":"t","metadata":{"x":{"memwrite_client_ref":"note-1"}}}`, kept: 2},
		"gone already":        {status: 404, memory: `{"detail":"Memory not found"}`},
		"cannot be read":      {status: 403, memory: `{"detail":"Insufficient scope. Missing: memory:read"}`, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost:
					respond(w, 201, `{"id":9,"text":"t"}`)
				case r.Method == http.MethodDelete:
					respond(w, 200, `{"deleted":2,"deleted_ids":[7,8]}`)
				case tc.status == 200:
					respond(w, 200, fmt.Sprintf(tc.memory, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]))
				default:
					respond(w, tc.status, tc.memory)
				}
			})
			res, err := srv.client(t).Replace(t.Context(), memwrite.ReplaceRequest{
				Old: note("1", nutsText), OldIDs: []int64{7, 8, 7}, New: edited(note("1", ""), officeText),
			})
			if (err != nil) != tc.err || res == nil || res.Added == nil || len(res.KeptIDs) != tc.kept || (res.Forgotten != nil) != tc.forgets {
				t.Errorf("%+v %v", res, err)
			}
			var sent []string
			for _, r := range srv.requests() {
				if r.method == http.MethodDelete {
					sent = append(sent, r.body)
				}
			}
			if tc.forgets != slices.Equal(sent, []string{`{"memory_ids":[7,8]}`}) || !tc.forgets && len(sent) > 0 {
				t.Errorf("deleted %v", sent)
			}
		})
	}
}

// Who made a memory is told by its metadata, and not at all without.
func TestAddTellsStoredFromMatched(t *testing.T) {
	t.Parallel()
	const hash = "b87d2b24"
	for name, tc := range map[string]struct {
		metadata, owner string
		matched         bool
	}{
		"ours":                  {`{"memwrite_text_sha256":"` + hash + `","memwrite_client_ref":"note-1"}`, "note-1", false},
		"another one's":         {`{"memwrite_text_sha256":"` + hash + `","memwrite_client_ref":"note-9"}`, "note-9", true},
		"one without reference": {`{"memwrite_text_sha256":"` + hash + `"}`, "", true},
		"nothing":               {`{}`, "", false},
		"null":                  {`null`, "", false},
		"no object":             {`"x"`, "", false},
		"somebody's":            {`{"topic":"food"}`, "", false},
		"of another type":       {`{"memwrite_client_ref":7}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := listen(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				respond(w, 201, `{"id":7,"text":"t","metadata":`+tc.metadata+`}`)
			})
			if res := add(t, srv.client(t), note("1", nutsText)); res.Outcome != memwrite.Stored || res.Owner != tc.owner || res.Matched != tc.matched {
				t.Errorf("owner %q, matched %v", res.Owner, res.Matched)
			}
		})
	}
}

// A write without a reference is told apart by its text alone, and one that was
// written before by the memory that WithVerifyText reads.
func TestAddTellsMatchedWithoutItsOwnAnswer(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	c := srv.Client(t, memwrite.WithVerifyText(true))
	nameless := memwrite.AddRequest{Text: nutsText, EndUserID: "acme"}
	for i, step := range []struct {
		req     memwrite.AddRequest
		owner   string
		matched bool
	}{
		{nameless, "", false},
		{nameless, "", false}, // an exact repeat cannot be told from the first
		{memwrite.AddRequest{Text: theNutsText, EndUserID: "acme"}, "", true},
		{note("1", nutsText), "", true},
		{note("1", nutsText), "", true}, // already ingested
		{note("2", officeText), "note-2", false},
		{note("2", officeText), "note-2", false}, // already ingested
		{memwrite.AddRequest{Text: officeText, EndUserID: "acme"}, "note-2", true},
	} {
		if res := add(t, c, step.req); res.Owner != step.owner || res.Matched != step.matched {
			t.Errorf("write %d: %s, owner %q, matched %v", i, res.Outcome, res.Owner, res.Matched)
		}
	}
	if _, err := c.Add(t.Context(), note("2", nutsText)); !errors.Is(err, memwrite.ErrRefReused) {
		t.Errorf("error %v, want ErrRefReused", err)
	}
}
