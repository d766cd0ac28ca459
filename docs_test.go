package memwrite_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/memwrite/memwrite-go"
	"github.com/memwrite/memwrite-go/conformance"
	"github.com/memwrite/memwrite-go/mockserver"
)

// The functions below are the programs of the pages, compiled and run. This
// test holds the pages to them.
func TestThePagesShowCodeThatRuns(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := folded(string(source))
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```")
	for page, want := range map[string]int{"README.md": 4, "docs/testing.md": 6, "docs/webhooks.md": 1, "docs/conformance.md": 1} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := blocks.FindAllStringSubmatch(string(text), -1)
		if len(found) != want {
			t.Errorf("%s has %d programs, want %d", page, len(found), want)
		}
		for _, block := range found {
			program := block[1]
			if i := strings.Index(program, "func Test"); i >= 0 {
				program = program[i:] // package and imports are this file's
			}
			if !strings.Contains(code, folded(program)) {
				t.Errorf("%s shows what docs_test.go does not run:\n%s", page, program)
			}
		}
	}
}

func folded(s string) string { return strings.Join(strings.Fields(s), " ") }

// README.md: a test with mockserver

func TestSendingTwiceStoresOnce(t *testing.T) {
	srv := mockserver.Run(t)
	client := srv.Client(t) // for both services, with keys that work

	// The server stores the note, and its answer never arrives.
	srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "note-0001"})

	req := memwrite.AddRequest{
		Text:      "My team ships releases every Thursday.",
		EndUserID: "acme",
		Ref:       memwrite.NewRef("note", "0001"),
	}
	for range 2 { // a queue delivers the note twice
		result, err := client.Add(t.Context(), req)
		if err != nil || result.Outcome != memwrite.AlreadyIngested {
			t.Fatal(result, err)
		}
	}
	srv.StoredOnce(t, "note-0001")
}

// README.md: add, turn, inferred write

func TestTheReadmesWrites(t *testing.T) { // not parallel: it sets the environment
	srv := mockserver.Run(t)
	t.Setenv("MEMORYSYNC_BASE_URL", srv.URL)
	t.Setenv("MEMORYSYNC_API_KEY", srv.MemorySyncKey)
	t.Setenv("FISHMEM_BASE_URL", srv.URL)
	t.Setenv("FISHMEM_API_KEY", srv.FishMemKey)
	client := srv.Client(t)
	for name, f := range map[string]func(context.Context, *memwrite.Client) error{"add": readmeAdd, "turn": readmeTurn, "infer": readmeInfer} {
		if err := f(t.Context(), client); err != nil {
			t.Error(name, err)
		}
	}
	srv.StoredOnce(t, "note-0001")
	srv.StoredOnce(t, "note-0101")
}

func readmeAdd(ctx context.Context, _ *memwrite.Client) error {
	client, err := memwrite.New(memwrite.FromEnvironment())
	if err != nil {
		return err
	}
	defer client.Close()

	result, err := client.Add(ctx, memwrite.AddRequest{
		Text:      "My team ships releases every Thursday.",
		EndUserID: "acme",
		Ref:       memwrite.NewRef("note", "0001"), // from your record, never generated per attempt
	})
	if err != nil {
		return err
	}
	switch result.Outcome {
	case memwrite.Stored:
		fmt.Println("stored:", result.Memory.Text)
	case memwrite.AlreadyIngested:
		fmt.Println("was there already:", result.MemoryIDs)
	case memwrite.Skipped:
		fmt.Println("nothing worth storing:", result.Reason)
	}

	return nil
}

func readmeTurn(ctx context.Context, client *memwrite.Client) error {
	receipt, err := client.AddTurn(ctx, memwrite.TurnRequest{
		TenantID:   "default",
		UserID:     "sam",
		Text:       "I ran my first 10K last weekend and finished in 58 minutes.",
		Role:       "user",
		Speaker:    "sam",
		OccurredAt: "2026-06-16T09:30:00Z", // as stored with the message, byte for byte
	})
	if err != nil {
		return err
	}
	fmt.Println(receipt.ProcessingStatus) // accepted for extraction, or a replay of the same turn

	return nil
}

func readmeInfer(ctx context.Context, client *memwrite.Client) error {
	event, err := client.AddAndWait(ctx, memwrite.InferRequest{
		Key:     memwrite.NewRef("note", "0101"),
		Scope:   memwrite.Scope{UserID: "fjord"},
		Content: "Our fiscal year ends on the thirtieth of September.",
	})
	if err != nil {
		return err
	}
	for _, r := range event.Results {
		fmt.Println("stored:", r.Memory)
	}

	return nil
}

// docs/testing.md

func TestNoteIsStoredOnce(t *testing.T) {
	srv := mockserver.Run(t)
	client := srv.Client(t) // for both services, with keys that work

	// your code under test, given client or srv.URL
	_, err := client.Add(t.Context(), memwrite.AddRequest{
		Text:      "My team ships releases every Thursday.",
		EndUserID: "acme",
		Ref:       memwrite.NewRef("note", "0001"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(srv.Records()); n != 1 {
		t.Fatalf("%d records", n)
	}
}

func TestTheOutageKeepsTheTicket(t *testing.T) {
	srv := mockserver.Run(t)
	// Real waits between tries would make this test slow; a policy in
	// milliseconds does not change what is tried again.
	client := srv.Client(t, memwrite.WithRetryPolicy(memwrite.RetryPolicy{Base: time.Millisecond, Cap: 5 * time.Millisecond}))

	ref := memwrite.NewRef("ticket", "HD-2026/4711")
	req := memwrite.AddRequest{Text: "Our office moved from Bristol to Cardiff.", EndUserID: "acme", Ref: ref}

	outage := srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: -1, Key: ref.String()})
	_, err := client.Add(t.Context(), req)
	if v := memwrite.VerdictOf(err); v.Action != memwrite.RetryAfter {
		t.Fatal("the message would be lost:", v)
	}
	outage.Disarm()

	if _, err := client.Add(t.Context(), req); err != nil { // delivered again
		t.Fatal(err)
	}
	srv.StoredOnce(t, ref.String())
}

func TestTheNoteOutlivesTenMinutesOfOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mockserver.Run(t, mockserver.InProcess())
		client := srv.Client(t) // with its real waits, which take no time here
		outage := srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, Times: -1})
		go func() {
			time.Sleep(10 * time.Minute)
			outage.Disarm()
		}()

		req := memwrite.AddRequest{Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "0001")}
		deliveries := 0
		for start := time.Now(); ; deliveries++ {
			_, err := client.Add(t.Context(), req)
			v := memwrite.VerdictOf(err)
			if v.Action == memwrite.Ack {
				break
			}
			if v.Action != memwrite.RetryAfter || time.Since(start) > time.Hour {
				t.Fatal(v, time.Since(start))
			}
			time.Sleep(max(v.After, time.Minute)) // what a queue does
		}
		srv.StoredOnce(t, "note-0001")
		t.Log("failed deliveries:", deliveries)
	})
}

func TestTheQuotaIsNoSuccess(t *testing.T) {
	mock := httpmock.NewMockTransport()
	mock.RegisterResponder("POST", "https://memory.example/memory/add", httpmock.NewStringResponder(200, `{"status":"ok"}`))
	client, err := memwrite.New(
		memwrite.WithMemorySync("https://memory.example", "ms_test_key"),
		memwrite.WithHTTPClient(&http.Client{Transport: mock}),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	_, err = client.Add(t.Context(), memwrite.AddRequest{
		Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "0001"),
	})
	if !errors.Is(err, memwrite.ErrQuotaExceeded) || memwrite.VerdictOf(err).Action != memwrite.Hold {
		t.Fatal(err)
	}
}

func serve(ctx context.Context) error {
	srv, err := mockserver.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	fmt.Println("MEMORYSYNC_BASE_URL=" + srv.URL)
	fmt.Println("MEMORYSYNC_API_KEY=" + srv.MemorySyncKey)
	fmt.Println("FISHMEM_BASE_URL=" + srv.URL)
	fmt.Println("FISHMEM_API_KEY=" + srv.FishMemKey)
	<-ctx.Done()
	return nil
}

func TestTheServerOfAProgram(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := serve(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestTheFaultsOfThePage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the waits that the faults ask for take no time
		srv := mockserver.Run(t, mockserver.InProcess())
		srv.Arm(mockserver.Fault{Kind: mockserver.DropResponse, Key: "note-0001"})
		srv.Arm(mockserver.Fault{Kind: mockserver.Status, Code: 503, RetryAfter: "2", Times: 3})
		srv.Arm(mockserver.Fault{Kind: mockserver.KillRunner, Point: mockserver.AfterCommit})
		_, err := srv.Client(t).Add(t.Context(), memwrite.AddRequest{
			Text: "My team ships releases every Thursday.", EndUserID: "acme", Ref: memwrite.NewRef("note", "0001"),
		})
		if err != nil {
			t.Fatal(err)
		}
		srv.StoredOnce(t, "note-0001")
	})
}

// docs/webhooks.md

func TestAWebhookTellsOfTheWrite(t *testing.T) {
	const secret = "whsec_0001" // the one the service shows for your endpoint

	hook, err := memwrite.NewWebhookHandler(memwrite.WebhookOptions{
		WebhookVerifier: memwrite.WebhookVerifier{Secrets: []string{secret}},
		Handle: func(ctx context.Context, e memwrite.WebhookEvent) error {
			if m, ok := e.MemoryAdded(); ok {
				log.Println("stored", m.EventID, m.MemoryIDs)
			}
			return nil // an error lets the message come again
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	endpoint := httptest.NewServer(hook) // in a program: http.Handle("/hooks/fishmem", hook)
	defer endpoint.Close()

	srv := mockserver.Run(t, mockserver.Webhook(endpoint.URL, secret))
	client := srv.Client(t, memwrite.WithEventSource(hook))

	_, err = client.AddAndWait(t.Context(), memwrite.InferRequest{
		Key:     memwrite.NewRef("note", "0001"),
		Scope:   memwrite.Scope{UserID: "acme"},
		Content: "My team ships releases every Thursday.",
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/conformance.md

func TestMyServerKeepsThePromises(t *testing.T) {
	srv := mockserver.Run(t) // in place of your own
	conformance.Test(t, conformance.Config{
		MemorySync: conformance.Endpoint{URL: srv.URL, Key: srv.MemorySyncKey},
		FishMem:    conformance.Endpoint{URL: srv.URL, Key: srv.FishMemKey},
	})
}
