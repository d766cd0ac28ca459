package conformance_test

import (
	"testing"

	"github.com/memwrite/memwrite-go/conformance"
	"github.com/memwrite/memwrite-go/mockserver"
)

// config is for a reference server in this process, with keys of a second
// workspace.
func config(srv *mockserver.Server) conformance.Config {
	return conformance.Config{
		MemorySync: conformance.Endpoint{URL: srv.URL, Key: srv.MemorySyncKey},
		FishMem:    conformance.Endpoint{URL: srv.URL, Key: srv.FishMemKey},
		ControlURL: srv.URL,

		OtherMemorySyncKey: srv.NewKey("other", "memorysync", "memory:*", "projects:read"),
		OtherFishMemKey:    srv.NewKey("other", "fishmem", "memory:read", "memory:write", "operations:read"),
	}
}

func TestTheReferenceServerKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	srv := mockserver.Run(t)
	report := conformance.Test(t, config(srv))
	if n := report.Count(conformance.NotRun); n > 0 {
		t.Errorf("%d checks did not run", n)
	}
	if err := srv.Check(); err != nil {
		t.Error(err)
	}
}
