package mockserver

import (
	"net/http"
	"reflect"
	"testing"
)

func TestAHeaderIsKeptWithoutWhatProvesWhoCalls(t *testing.T) {
	t.Parallel()
	sent := http.Header{"Accept": {"a", "b"}, "X-Empty": {""}, "Authorization": {"Bearer fm_1"}, "X-Api-Key": {"ms_1"}, "X-None": nil}
	kept := keepHeader(sent)
	if got, want := kept.header(), (http.Header{"Accept": {"a", "b"}, "X-Empty": {""}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := keepHeader(nil).header(); got == nil || len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
}
